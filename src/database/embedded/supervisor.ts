import { fork, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { counter } from '../../core/metrics.ts';
import { pauses } from '../../core/backoff.ts';
import { keepCheckpoints } from './checkpoints.ts';
import { DataDirUnusable, openDataDir, openPrivateDir } from './directory.ts';
import { lockDataDir } from './lock.ts';
import type { Word } from './ipc-message.ts';

/** The embedded database, reached like a PostgreSQL server through a socket in this directory. */
export interface Embedded {
  socketDir: string;
  /** Kills the child, for one that does not answer any more; another is started in its place. One that is new is left to begin. */
  end(): void;
  stop(): Promise<void>;
}

// The name that PostgreSQL's clients look for in a directory given as host.
const SOCKET_NAME = '.s.PGSQL.5432';
// What Unix allows for a socket's path, less the closing zero; macOS has the smallest.
const MAX_SOCKET_PATH = 103;
const STOP_TIMEOUT_MS = 5_000;
/** A child that has not opened its database by then never will. */
const START_TIMEOUT_MS = 120_000;
/** What has just been opened may have answered without anyone having asked yet. */
const HEARD_MS = 5_000;

const restarts = counter(
  'shopfront_embedded_restarts_total',
  'How often the process of the embedded database ended unasked, and was started again.',
);

/**
 * Starts the embedded database of the data directory in a child process, and again whenever that ends unasked, until it is there.
 * With `attach`, uses the one that another process runs there, if any. Throws DataDirInUse and DataDirUnusable.
 */
export async function startEmbedded(dataDir: string, log: Logger, attach = false): Promise<Embedded> {
  const root = resolve(dataDir);
  const socketDir = socketDirOf(root);
  // PGlite asks for no password: who may open the socket may do everything.
  openDataDir(root);
  if (socketDir !== root) openPrivateDir(socketDir);
  const socketPath = join(socketDir, SOCKET_NAME);
  if (attach && (await answers(socketPath))) return { socketDir, end: () => undefined, stop: async () => undefined };

  let child: ChildProcess | undefined;
  let isOpen = false;
  let openedAt = 0;
  const stopping = new AbortController();
  let release: (() => void) | undefined;
  await start().catch((error: unknown) => {
    release?.();
    throw error;
  });
  void keepCheckpoints(socketDir, stopping.signal);
  return {
    socketDir,
    end() {
      if (!isOpen || performance.now() - openedAt < HEARD_MS) return;
      log.error({ event: 'database.ended' }, 'the embedded database does not answer and is killed');
      child?.kill('SIGKILL');
    },
    async stop() {
      stopping.abort();
      if (child) await stopChild(child, isOpen);
      release?.();
    },
  };

  async function start(): Promise<void> {
    const started = fork(fileURLToPath(new URL('./database-process.js', import.meta.url)), [join(root, 'postgres'), socketPath], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [],
    });
    child = started;
    // It may be gone before it has heard what it is told.
    started.on('error', (error) => log.warn({ err: error }, 'the embedded database cannot be told'));
    started.stderr?.setEncoding('utf8').on('data', (text: string) => log.error({ text }, 'the embedded database says'));
    try {
      const pid = started.pid;
      if (pid === undefined) throw new Error('The process of the embedded database cannot be started.');
      // The lock carries the child's number beside ours: it is the child that has the files open, also if we are killed.
      release = await lockDataDir(root, pid);
      started.send('open');
      await opened(started);
    } catch (error) {
      started.kill('SIGKILL');
      if (!hasEnded(started)) await once(started, 'exit');
      throw error;
    }
    isOpen = true;
    openedAt = performance.now();
    if (hasEnded(started)) return startAgain();
    started.once('exit', () => void startAgain());
  }

  async function startAgain(): Promise<void> {
    isOpen = false;
    if (stopping.signal.aborted) return;
    restarts.value++;
    log.error({ code: child?.exitCode, signal: child?.signalCode }, 'the embedded database ended and is started again');
    for (const pause of pauses()) {
      try {
        return await start();
      } catch (error) {
        log.error({ err: error }, 'the embedded database cannot be started yet');
      }
      await setTimeout(pause, undefined, { ref: false });
      if (stopping.signal.aborted) return;
    }
  }
}

function socketDirOf(root: string): string {
  if (join(root, SOCKET_NAME).length <= MAX_SOCKET_PATH) return root;
  return join(tmpdir(), `shopfront-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
}

/** Resolves once the child has its database open. Rejects with what it says, where it cannot. */
async function opened(child: ChildProcess): Promise<void> {
  const done = new AbortController();
  const { signal } = done;
  const word = once(child, 'message', { signal }) as Promise<[Word]>;
  // What it has said is read before this.
  const gone = once(child, 'disconnect', { signal });
  const [said] = await Promise.race([word, gone, setTimeout(START_TIMEOUT_MS, [undefined], { signal })]).finally(() => done.abort());
  if (typeof said !== 'object' || said === null) throw new DataDirUnusable('The embedded database did not start; the log may say why.');
  if (!said.ready) throw new DataDirUnusable(said.reason);
}

async function stopChild(child: ChildProcess, isOpen: boolean): Promise<void> {
  if (hasEnded(child)) return;
  const exited = once(child, 'exit');
  const timer = new AbortController();
  if (isOpen) child.send('stop');
  else child.kill('SIGKILL');
  setTimeout(STOP_TIMEOUT_MS, undefined, timer).then(
    () => child.kill('SIGKILL'),
    () => undefined,
  );
  await exited;
  timer.abort();
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(socketPath);
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}
