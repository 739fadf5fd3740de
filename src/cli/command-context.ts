import { Console } from 'node:console';
import type { Readable, Writable } from 'node:stream';
import type { SignalSource } from '../core/signals.ts';

/** The time of a command line. */
interface Clock {
  /** The wall clock. */
  now(): Date;
  /** Milliseconds since a fixed moment. Never goes back. */
  elapsedMs(): number;
}

/** Standard output or standard error: a stream that may be a terminal. */
type OutputStream = Writable & { isTTY?: boolean; columns?: number };

/** What the command line reads, writes and listens to: that of the process, or streams in memory. */
export interface CommandIo {
  /** Settings, by the names of their environment variables. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: Readable & { isTTY?: boolean; fd?: number };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Emits SIGINT when the user interrupts the command. */
  readonly signals: SignalSource;
  readonly clock: Clock;
  /** Ends the process at once. */
  readonly exit: (code: number) => void;
}

/** What every command works with. */
export interface CommandContext extends CommandIo {
  /** Writes a line to standard output. A reader that has left is no error. */
  readonly print: (line: string) => void;
  /** Writes a line to standard error. */
  readonly printError: (line: string) => void;
  /** Sets the exit code of this run. The last call wins. */
  readonly setExitCode: (code: number) => void;
}

/** Makes the context of the commands of one program. */
export function commandContext(io: CommandIo, setExitCode: (code: number) => void): CommandContext {
  let opened: Console | undefined;
  const lines = () => (opened ??= new Console({ stdout: io.stdout, stderr: io.stderr }));
  return {
    env: io.env,
    // Opening standard input sets the file non-blocking, also for other processes that share it: only commands that read it do so.
    get stdin() {
      return io.stdin;
    },
    stdout: io.stdout,
    stderr: io.stderr,
    signals: io.signals,
    clock: io.clock,
    exit: io.exit,
    print: (line) => lines().log(line),
    printError: (line) => lines().error(line),
    setExitCode,
  };
}
