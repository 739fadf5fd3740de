import { PassThrough, Writable } from 'node:stream';
import type { CommandIo } from '../../src/cli/command-context.ts';
import { runProgram } from '../../src/cli/program.ts';
import { checkLeaks, type ProcessResult } from './process.ts';

/** A command that runs in this process. */
interface RunningCommand {
  /** Standard input, unless the options replace it. It is open. */
  stdin: PassThrough;
  /** Resolves when the command has exited. */
  ended: Promise<ProcessResult>;
}

/** Replaces defaults of a command. */
type CommandOptions = Partial<Pick<CommandIo, 'stdin' | 'stdout' | 'stderr'>>;

/** Runs a CLI command in this process until it exits, with only these settings. */
export async function command(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string | Buffer = '',
  options: CommandOptions = {},
): Promise<ProcessResult> {
  const { stdin, ended } = startCommand(args, env, options);
  stdin.end(input);
  return ended;
}

/** Starts a command in this process. */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  options: CommandOptions = {},
): RunningCommand {
  const [stdin, stdout, stderr] = [new PassThrough(), new Collector(), new Collector()];
  const io = {
    env: { ...env },
    stdin,
    stdout,
    stderr,
    ...options,
  };
  const ended = runProgram(io, args).then((code) =>
    checkLeaks({ code, stdout: stdout.text, stderr: stderr.text }),
  );
  // A test may await something else first.
  ended.catch(() => undefined);
  return { stdin, ended };
}

/** Collects all output. */
class Collector extends Writable {
  private readonly pieces: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.pieces).toString();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.pieces.push(piece);
    done();
  }
}
