import { Console } from 'node:console';
import type { Readable, Writable } from 'node:stream';

/** Streams and environment of the command line: of the process, or in memory. */
export interface CommandIo {
  /** Settings, by the names of their environment variables. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** The context of every command. */
export interface CommandContext extends CommandIo {
  /** Writes a line to standard output. A closed pipe is no error. */
  readonly print: (line: string) => void;
  /** Writes a line to standard error. */
  readonly printError: (line: string) => void;
  /** Sets the exit code of this run. The last call wins. */
  readonly setExitCode: (code: number) => void;
}

/** Creates the context of the commands of one program. */
export function commandContext(io: CommandIo, setExitCode: (code: number) => void): CommandContext {
  const stdio = new Console({ stdout: io.stdout, stderr: io.stderr });
  // Inherits the getter of `stdin`: only commands that read standard input open it, because that
  // makes the file non-blocking, also for other processes that share it.
  return Object.assign(Object.create(io) as CommandIo, {
    print: (line: string) => stdio.log(line),
    printError: (line: string) => stdio.error(line),
    setExitCode,
  });
}
