import { Console } from 'node:console';
import type { Readable, Writable } from 'node:stream';
import type { SignalSource } from '../core/signals.ts';

/** The clock of the command line. */
interface Clock {
  /** The wall clock. */
  now(): Date;
  /** Monotonic time in milliseconds. */
  elapsedMs(): number;
}

/** Standard output or standard error, which may be a terminal. */
type OutputStream = Writable & { isTTY?: boolean; columns?: number };

/** Streams, environment and signals of the command line: of the process, or in memory. */
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
  let stdio: Console | undefined;
  const openConsole = () => (stdio ??= new Console({ stdout: io.stdout, stderr: io.stderr }));
  return {
    env: io.env,
    // Only commands that read standard input open it, because that makes the file non-blocking,
    // also for other processes that share it.
    get stdin() {
      return io.stdin;
    },
    stdout: io.stdout,
    stderr: io.stderr,
    signals: io.signals,
    clock: io.clock,
    exit: io.exit,
    print: (line) => openConsole().log(line),
    printError: (line) => openConsole().error(line),
    setExitCode,
  };
}
