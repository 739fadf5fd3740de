import { fork, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { lockDataDir } from './lock.ts';

/** The embedded database, reached like a PostgreSQL server through a socket in this directory. */
export interface Embedded {
  socketDir: string;
  stop(): Promise<void>;
}

// The name that PostgreSQL's clients look for in a directory given as host.
const SOCKET_NAME = '.s.PGSQL.5432';
// What Unix allows for a socket's path, less the closing zero; macOS has the smallest.
const MAX_SOCKET_PATH = 103;
const STOP_TIMEOUT_MS = 5_000;

/**
 * Starts the embedded database of the data directory in a child process, and again whenever that ends unasked. With
 * `attach`, uses the one that another process runs there, if any. Throws DataDirInUse.
 */
export async function startEmbedded(dataDir: string, log: Logger, attach = false): Promise<Embedded> {
  const root = resolve(dataDir);
  const socketDir = socketDirOf(root);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  mkdirSync(socketDir, { recursive: true, mode: 0o700 });
  // PGlite asks for no password: who may open the socket may do everything.
  chmodSync(root, 0o700);
  chmodSync(socketDir, 0o700);
  const socketPath = join(socketDir, SOCKET_NAME);
  if (attach && (await answers(socketPath))) return { socketDir, stop: async () => undefined };

  let stopping = false;
  // Set once it is ready: what ends before that has failed to start, and is not started again.
  let child: ChildProcess | undefined;
  child = await start();
  return {
    socketDir,
    async stop() {
      stopping = true;
      const running = child;
      if (!running || running.exitCode !== null || running.signalCode !== null) return;
      const exited = once(running, 'exit');
      const timer = setTimeout(() => running.kill('SIGKILL'), STOP_TIMEOUT_MS);
      running.send('stop');
      await exited;
      clearTimeout(timer);
    },
  };

  async function start(): Promise<ChildProcess> {
    const started = fork(fileURLToPath(new URL('./child.js', import.meta.url)), [join(root, 'postgres'), socketPath], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [],
    });
    started.stderr?.setEncoding('utf8').on('data', (text: string) => log.error({ text }, 'the embedded database says'));
    const pid = started.pid;
    if (pid === undefined) throw new Error('The embedded database could not be started');
    // The lock carries the child's number, not ours: it is the child that has the files open, also if we are killed.
    const release = await lock(started, pid);
    started.once('exit', (code, signal) => {
      release();
      if (stopping || child !== started) return;
      log.error({ code, signal }, 'the embedded database ended and is started again');
      void restart();
    });
    started.send('open');
    await ready(started);
    return started;
  }

  async function lock(started: ChildProcess, pid: number): Promise<() => void> {
    try {
      return await lockDataDir(root, pid);
    } catch (error) {
      started.kill('SIGKILL');
      throw error;
    }
  }

  async function restart(): Promise<void> {
    try {
      child = await start();
    } catch (error) {
      log.fatal({ err: error }, 'the embedded database cannot be started again');
      process.exit(1);
    }
  }
}

function socketDirOf(root: string): string {
  if (join(root, SOCKET_NAME).length <= MAX_SOCKET_PATH) return root;
  return join(tmpdir(), `shopfront-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
}

async function ready(child: ChildProcess): Promise<void> {
  const ended = new AbortController();
  const exit = once(child, 'exit', { signal: ended.signal }).then(() => {
    throw new Error('The embedded database did not start; the log says why');
  });
  await Promise.race([once(child, 'message', { signal: ended.signal }), exit]).finally(() => ended.abort());
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(socketPath);
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}
