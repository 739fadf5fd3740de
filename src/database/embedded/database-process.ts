import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { unaccent } from '@electric-sql/pglite/contrib/unaccent';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { DataDirUnusable, openDatabaseDir } from './directory.ts';
import type { IpcMessage } from './ipc-message.ts';

// The database process: PGlite behind a local socket that speaks PostgreSQL's protocol. Arguments:
// the data directory and the socket's path. The process opens the database on its parent's first
// message, sends the result, and exits on the next message or when the parent is gone.

const [dataDir, socketPath] = process.argv.slice(2);
if (dataDir === undefined || socketPath === undefined)
  throw new Error('Usage: database-process DATA_DIR SOCKET_PATH');

const MAX_CONNECTIONS = 1_000;
/** Extensions that migrations may create. PGlite needs a list; PostgreSQL brings its own. */
const EXTENSIONS = { pg_trgm, unaccent };
// Frontend messages that leave an extended query open until Sync: Parse, Bind, Describe, Execute,
// Close, Flush.
const OPENS_SEQUENCE = new Set([...'PBDECH'].map((type) => type.charCodeAt(0)));
// First field of an error that ends a backend, after the message type and length (PostgreSQL,
// 55.8).
const ENDS_BACKEND = /^E[^]{4}S(PANIC|FATAL)\0/;
/** Number of bytes that ENDS_BACKEND needs. */
const PREFIX_BYTES = 12;

// A terminal signals the whole process group. The parent drains first, then sends `stop`.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

// The parent acquires the lock for this process before any file is opened.
await once(process, 'message');
process.once('disconnect', () => process.exit(1));
const pglite = await openDatabaseDir(dataDir, () =>
  PGlite.create({ dataDir, extensions: EXTENSIONS }),
).catch(sendFailure);
rmSync(socketPath, { force: true });
const server = new PGLiteSocketServer({
  db: exclusiveSequences(pglite),
  path: socketPath,
  maxConnections: MAX_CONNECTIONS,
});
await server.start();

process.removeAllListeners('disconnect').once('disconnect', stop);
process.once('message', stop);
send({ ready: true });

async function stop(): Promise<void> {
  await server.stop();
  await pglite.close();
  process.exit(0);
}

async function sendFailure(error: unknown): Promise<never> {
  const reason = error instanceof DataDirUnusable ? error.message : String(error);
  await new Promise<void>((done) => send({ ready: false, reason }, done));
  process.exit(1);
}

function send(message: IpcMessage, onSent?: () => void): void {
  process.send?.(message, () => onSent?.());
}

/**
 * Wraps the database for the socket server: the messages of a connection up to its Sync run without
 * interruption. The server forwards single messages and excludes other connections only while a
 * transaction is open. After an error none is open, so another connection's messages could
 * interrupt and replace the unnamed statement.
 */
function exclusiveSequences(db: PGlite): PGlite {
  let isSequenceOpen = false;
  return new Proxy(db, {
    get(target, property) {
      if (property === 'isInTransaction') return () => isSequenceOpen || target.isInTransaction();
      if (property === 'exec') {
        return (sql: string) => {
          isSequenceOpen = false;
          return target.exec(sql);
        };
      }
      if (property === 'execProtocolRawStream') {
        return async (
          message: Uint8Array,
          { onRawData }: Parameters<PGlite['execProtocolRawStream']>[1],
        ) => {
          isSequenceOpen = OPENS_SEQUENCE.has(message[0] ?? 0);
          const forward = (response: Uint8Array) => {
            onRawData(response);
            if (endsBackend(response)) process.exit(1);
          };
          return target.execProtocolRawStream(message, { onRawData: forward }).catch(exitOnCrash);
        };
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

// After such an error, for example when the write-ahead log finds no space, PGlite loops forever.
function endsBackend(response: Uint8Array): boolean {
  return (
    response[0] === 'E'.charCodeAt(0) &&
    ENDS_BACKEND.test(Buffer.from(response.subarray(0, PREFIX_BYTES)).toString('latin1'))
  );
}

// An SQL error is returned as a message. An exception is a failure of the database itself, which
// needs a new process.
function exitOnCrash(error: unknown): never {
  console.error(error);
  process.exit(1);
}
