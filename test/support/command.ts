import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import type { CommandIo } from '../../src/cli/command-context.ts';
import { createProgram } from '../../src/cli/program.ts';
import { checkLeaks, type Ended } from './process.ts';

/** A command that runs in this process. */
export interface RunningCommand {
  /** Standard input, where no other is given. It is open. */
  stdin: PassThrough;
  /** Sends SIGINT, as Ctrl-C does. */
  interrupt: () => void;
  /** Resolves when the command has ended. */
  ended: Promise<Ended>;
}

/** Replaces what a command gets by default. */
type CommandOptions = Partial<Pick<CommandIo, 'stdin' | 'stdout' | 'stderr' | 'clock' | 'exit'>>;

/** Runs a command of the operator's command line in this process, to its end, with only these settings. */
export async function command(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string | Buffer = '',
  options: CommandOptions = {},
): Promise<Ended> {
  const { stdin, ended } = startCommand(args, env, options);
  stdin.end(input);
  return ended;
}

/** Starts a command in this process. No time passes for it unless a clock is given, so it shows no progress. */
export function startCommand(args: readonly string[], env: Readonly<Record<string, string>>, options: CommandOptions = {}): RunningCommand {
  const [stdin, stdout, stderr, signals] = [new PassThrough(), new Collector(), new Collector(), new EventEmitter()];
  const program = createProgram({
    env: { ...env },
    stdin,
    stdout,
    stderr,
    signals,
    clock: { now: () => new Date(), elapsedMs: () => 0 },
    exit: (code) => {
      throw new Error(`The command ended its process with ${code}`);
    },
    ...options,
  });
  const ended = program.run(args).then((code) => checkLeaks({ code, stdout: stdout.text, stderr: stderr.text }));
  // A test may wait for something else first.
  ended.catch(() => undefined);
  return { stdin, ended, interrupt: () => void signals.emit('SIGINT') };
}

/** Keeps all that is written to it. */
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
