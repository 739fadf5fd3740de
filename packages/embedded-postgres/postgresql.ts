import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import {
  createDatabase,
  databaseIn,
  isBeingReplaced,
  openDataDir,
  openPrivateDir,
  ownerOf,
  unusableDatabase,
} from './directory.ts';
import { connectAsOwner, DataDirInUse, displaceAbandoned, isReady } from './owner.ts';
import { commandFor, findPrograms } from './programs.ts';

/** The used part of a logger such as pino. */
export interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface Options {
  /** Uses the database of another process on the data directory, if any. */
  attach?: boolean;
  /** Called when the database exited unexpectedly, before it is restarted. */
  onRestart?: () => void;
}

/** The embedded database: a PostgreSQL server on this machine. */
export interface Embedded {
  /** URL of the app, whose role owns the database. */
  url: string;
  /** URL of the superuser. */
  adminUrl: string;
  stop(): Promise<void>;
}

// Name that PostgreSQL's clients expect in a directory given as host.
const SOCKET_NAME = '.s.PGSQL.5432';
// Maximum length of a Unix socket path on macOS, the smallest, in bytes without the closing zero.
const MAX_SOCKET_PATH = 103;
/** Maximum time to open the database, in ms, which includes replaying its log after a kill. */
const START_TIMEOUT_MS = 120_000;
/** Maximum duration of a shutdown with a checkpoint, in ms. After it, PostgreSQL stops at once. */
const STOP_TIMEOUT_MS = 5_000;
const READY_INTERVAL_MS = 5;
/** Delays between attempts to restart the database, in ms. The last one is repeated. */
const RESTART_DELAYS_MS = [100, 500, 1_000, 5_000];

const INITDB = [
  '--username=postgres',
  // Only who may enter the data directory reaches the socket.
  '--auth=trust',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-instructions',
];
const SETTINGS = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  // Also in containers with little shared memory.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  jit: 'off',
  // Messages of errors contain values of statements. The app logs them without.
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
};

/** A superuser could read files and run programs, so the app has a role that owns its database. */
const CREATE_ROLE = `
  do $$
  begin
    if not exists (select from pg_roles where rolname = 'shopfront') then
      create role shopfront login;
      alter database postgres owner to shopfront;
    end if;
  end $$`;

/**
 * Starts the embedded database of the data directory; creates it if it is missing. Restarts it
 * whenever it exits unexpectedly. Throws DataDirInUse and DataDirUnusable.
 */
export async function startEmbedded(
  dataDir: string,
  log: Log,
  { attach = false, onRestart }: Options = {},
): Promise<Embedded> {
  const root = resolve(dataDir);
  const cluster = databaseIn(root);
  const socketDir = socketDirOf(root);
  const urls = {
    url: urlOf('shopfront', socketDir),
    adminUrl: urlOf('postgres', socketDir),
  };
  openDataDir(root);
  if (socketDir !== root) openPrivateDir(socketDir);
  const { initdb, postgres } = await findPrograms();
  await createDatabase(root, async (path) => {
    log.info(
      { event: 'database.creation', directory: root },
      'Creating the embedded database, once; this takes a few seconds',
    );
    const [file, args] = commandFor(initdb, ['-D', path, ...INITDB], ownerOf(root));
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const [errors] = await Promise.all([text(child.stderr), once(child, 'close')]);
    if (child.exitCode !== 0) throw new Error(messageOf(errors));
  });

  let server: ChildProcess | undefined;
  let owner: pg.Client | undefined;
  let restarting: Promise<void> | undefined;
  const stopping = new AbortController();
  try {
    await start();
  } catch (error) {
    if (attach && error instanceof DataDirInUse) return { ...urls, stop: async () => undefined };
    throw error;
  }
  return {
    ...urls,
    async stop() {
      stopping.abort();
      await restarting;
      await owner?.end();
      // The server of a command serves those that have attached to it until they have ended.
      if (server) await stopServer(server, attach ? 'SIGTERM' : 'SIGINT');
    },
  };

  async function start(): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      while (isBeingReplaced(root) && performance.now() < deadline) await delay(READY_INTERVAL_MS);
      await displaceAbandoned(root, cluster, urls.adminUrl);
      const started = launch();
      const failure = await untilReady(started, deadline);
      if (failure === undefined) {
        owner = await openAsOwner(urls.adminUrl).catch(async (error: Error) => {
          await stopServer(started, 'SIGINT');
          throw unusableDatabase(cluster, error.message);
        });
        server = started;
        started.once('exit', () => (restarting = restart()));
        return;
      }
      // Another process was faster, or the processes of a killed server have not all exited.
      if (!/^lock file |shared memory block /.test(failure) || performance.now() > deadline)
        throw unusableDatabase(cluster, failure);
      await delay(READY_INTERVAL_MS);
    }
  }

  function launch(): ChildProcess {
    const quoted = `"${socketDir.replaceAll('"', '""')}"`;
    const settings = { ...SETTINGS, unix_socket_directories: quoted };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const [file, all] = commandFor(postgres, ['-D', cluster, ...args], ownerOf(cluster));
    // A terminal signals its process group. The app drains before it stops the database.
    return spawn(file, all, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  }

  async function restart(): Promise<void> {
    if (stopping.signal.aborted) return;
    onRestart?.();
    log.error(
      { code: server?.exitCode, signal: server?.signalCode },
      'Embedded database exited; restarting',
    );
    await owner?.end().catch(() => undefined);
    for (let attempt = 0; ; attempt++) {
      try {
        return await start();
      } catch (error) {
        log.error({ err: error }, 'Embedded database restart failed; retrying');
      }
      const pause = RESTART_DELAYS_MS[attempt] ?? RESTART_DELAYS_MS.at(-1);
      const { signal } = stopping;
      await delay(pause, undefined, { ref: false, signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  /** Resolves when the server is ready, or with its error message. */
  async function untilReady(child: ChildProcess, deadline: number): Promise<string | undefined> {
    let errors = '';
    let ready = false;
    const lines = createInterface({ input: child.stderr as Readable });
    lines.on('line', (line) => {
      if (!ready) errors += `${line}\n`;
      // A running server reports the end of single connections, such as of a lost client.
      else if (!line.includes(' FATAL: '))
        log.error({ text: line }, 'Embedded database wrote to standard error');
    });
    const closed = once(child, 'close').catch((error: unknown) => (errors += String(error)));
    while (!ready) {
      if (hasEnded(child)) {
        await closed;
        return messageOf(errors);
      }
      if (performance.now() > deadline) {
        await stopServer(child, 'SIGQUIT');
        return 'it does not start';
      }
      ready = isReady(cluster, child.pid ?? 0);
      if (!ready) await delay(READY_INTERVAL_MS);
    }
    return undefined;
  }
}

// Anyone who may enter the data directory may connect as any role.
function urlOf(role: string, socketDir: string): string {
  return `postgresql://${role}@localhost/postgres?host=${encodeURIComponent(socketDir)}`;
}

async function openAsOwner(adminUrl: string): Promise<pg.Client> {
  const client = await connectAsOwner(adminUrl);
  await client.query(CREATE_ROLE);
  return client;
}

function socketDirOf(root: string): string {
  if (Buffer.byteLength(join(root, SOCKET_NAME)) <= MAX_SOCKET_PATH) return root;
  return join(
    tmpdir(),
    `shopfront-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`,
  );
}

async function stopServer(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(server)) return;
  const exited = once(server, 'exit');
  server.kill(signal);
  const timer =
    signal === 'SIGINT' ? setTimeout(() => server.kill('SIGQUIT'), STOP_TIMEOUT_MS) : undefined;
  await exited;
  clearTimeout(timer);
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

// The message of an error, without the hints after it.
function messageOf(errors: string): string {
  const lines = errors.split('\n').filter(Boolean);
  const line = lines.findLast((each) => /(FATAL|PANIC|error):/.test(each)) ?? lines.at(-1) ?? '';
  return line.replace(/^.*(FATAL|PANIC|error): */, '');
}
