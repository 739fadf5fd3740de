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
import { backoff } from '../../core/backoff.ts';
import { runCheckpoints } from './checkpoints.ts';
import { DataDirUnusable, openDataDir, openPrivateDir } from './directory.ts';
import { lockDataDir } from './lock.ts';
import type { IpcMessage } from './ipc-message.ts';

/** The embedded database. It listens like a PostgreSQL server, on a socket in this directory. */
export interface Embedded {
  socketDir: string;
  /** Kills an unresponsive database process, so that another is started. Spares a new one. */
  end(): void;
  stop(): Promise<void>;
}

// Name that PostgreSQL's clients expect in a directory given as host.
const SOCKET_NAME = '.s.PGSQL.5432';
// Maximum length of a Unix socket path on macOS, the smallest, in bytes without the closing zero.
const MAX_SOCKET_PATH = 103;
const STOP_TIMEOUT_MS = 5_000;
/** Maximum time to open the database, in ms. */
const START_TIMEOUT_MS = 120_000;
/** Minimum uptime before a kill, in ms: the health check may not have checked a new process yet. */
const MIN_UPTIME_MS = 5_000;

const restarts = counter(
  'shopfront_embedded_restarts_total',
  'Restarts of the embedded database after its process exited unexpectedly.',
);

/**
 * Starts the embedded database of the data directory in a separate process. Restarts it whenever it
 * exits unexpectedly. With `attach`, uses the database of another process there, if any. Throws
 * DataDirInUse and DataDirUnusable.
 */
export async function startEmbedded(
  dataDir: string,
  log: Logger,
  attach = false,
): Promise<Embedded> {
  const root = resolve(dataDir);
  const socketDir = socketDirOf(root);
  // PGlite requires no password: access to the socket is full access to the database.
  openDataDir(root);
  if (socketDir !== root) openPrivateDir(socketDir);
  const socketPath = join(socketDir, SOCKET_NAME);
  if (attach && (await isListening(socketPath)))
    return { socketDir, end: () => undefined, stop: async () => undefined };

  let databaseProcess: ChildProcess | undefined;
  let isOpen = false;
  let openedAt = 0;
  const stopping = new AbortController();
  let release: (() => void) | undefined;
  await start().catch((error: unknown) => {
    release?.();
    throw error;
  });
  void runCheckpoints(socketDir, stopping.signal);
  return {
    socketDir,
    end() {
      if (!isOpen || performance.now() - openedAt < MIN_UPTIME_MS) return;
      log.error(
        { event: 'database.ended' },
        'Embedded database not responding; killing its process',
      );
      databaseProcess?.kill('SIGKILL');
    },
    async stop() {
      stopping.abort();
      if (databaseProcess) await stopProcess(databaseProcess, isOpen);
      release?.();
    },
  };

  async function start(): Promise<void> {
    const started = fork(
      fileURLToPath(new URL('./database-process.js', import.meta.url)),
      [join(root, 'postgres'), socketPath],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        execArgv: [],
      },
    );
    databaseProcess = started;
    // It may exit before it receives a message.
    started.on('error', (error) => log.warn({ err: error }, 'Embedded database process error'));
    started.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) =>
        log.error({ text }, 'Embedded database process wrote to standard error'),
      );
    try {
      const pid = started.pid;
      if (pid === undefined)
        throw new Error('The process of the embedded database cannot be started.');
      // The lock includes the database process's id, because it has the files open even if this
      // process is killed.
      release = await lockDataDir(root, pid);
      started.send('open');
      await untilOpen(started);
    } catch (error) {
      started.kill('SIGKILL');
      if (!hasEnded(started)) await once(started, 'exit');
      throw error;
    }
    isOpen = true;
    openedAt = performance.now();
    if (hasEnded(started)) return restart();
    started.once('exit', () => void restart());
  }

  async function restart(): Promise<void> {
    isOpen = false;
    if (stopping.signal.aborted) return;
    restarts.value++;
    log.error(
      { code: databaseProcess?.exitCode, signal: databaseProcess?.signalCode },
      'Embedded database process exited; restarting',
    );
    for (const pause of backoff()) {
      try {
        return await start();
      } catch (error) {
        log.error({ err: error }, 'Embedded database restart failed; retrying');
      }
      await setTimeout(pause, undefined, { ref: false });
      if (stopping.signal.aborted) return;
    }
  }
}

function socketDirOf(root: string): string {
  if (join(root, SOCKET_NAME).length <= MAX_SOCKET_PATH) return root;
  return join(
    tmpdir(),
    `shopfront-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`,
  );
}

/** Resolves when the process has opened its database. Rejects with its reason if it cannot. */
async function untilOpen(databaseProcess: ChildProcess): Promise<void> {
  const done = new AbortController();
  const { signal } = done;
  const message = once(databaseProcess, 'message', { signal }) as Promise<[IpcMessage]>;
  // Emitted after the process's messages.
  const disconnected = once(databaseProcess, 'disconnect', { signal });
  const [result] = await Promise.race([
    message,
    disconnected,
    setTimeout(START_TIMEOUT_MS, [undefined], { signal }),
  ]).finally(() => done.abort());
  if (typeof result !== 'object' || result === null)
    throw new DataDirUnusable('The embedded database did not start. Check the log for the reason.');
  if (!result.ready) throw new DataDirUnusable(result.reason);
}

async function stopProcess(databaseProcess: ChildProcess, isOpen: boolean): Promise<void> {
  if (hasEnded(databaseProcess)) return;
  const exited = once(databaseProcess, 'exit');
  const timer = new AbortController();
  if (isOpen) databaseProcess.send('stop');
  else databaseProcess.kill('SIGKILL');
  setTimeout(STOP_TIMEOUT_MS, undefined, timer).then(
    () => databaseProcess.kill('SIGKILL'),
    () => undefined,
  );
  await exited;
  timer.abort();
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(socketPath);
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}
