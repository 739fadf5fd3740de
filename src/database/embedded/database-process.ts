import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { unaccent } from '@electric-sql/pglite/contrib/unaccent';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { DataDirUnusable, openDatabaseDir } from './directory.ts';
import type { Word } from './ipc-message.ts';

// The embedded database's own process: PGlite behind a local socket that speaks PostgreSQL's protocol.
// Arguments: the data directory and the socket's path. It opens when its parent says so, answers how that went, and ends at the
// parent's next word or when the parent is gone.

const [dataDir, socketPath] = process.argv.slice(2);
if (dataDir === undefined || socketPath === undefined) throw new Error('usage: child DATA_DIR SOCKET_PATH');

const MAX_CONNECTIONS = 1_000;
/** What migrations may create: PostgreSQL's own extensions come with it, PGlite's are named. */
const EXTENSIONS = { pg_trgm, unaccent };
// Frontend messages that leave an extended query open until Sync: Parse, Bind, Describe, Execute, Close, Flush.
const OPENS_SEQUENCE = new Set([...'PBDECH'].map((letter) => letter.charCodeAt(0)));
// The first field of an error that ends a backend, after the message's letter and its length (protocol flow: PostgreSQL, 55.8).
const ENDS_BACKEND = /^E[^]{4}S(PANIC|FATAL)\0/;
const LONGEST_START = 12;

// The terminal sends these to the whole group; the parent drains first and then says when.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

// The parent takes the lock for this process before any file is opened.
await once(process, 'message');
process.once('disconnect', () => process.exit(1));
const pglite = await openDatabaseDir(dataDir, () => PGlite.create({ dataDir, extensions: EXTENSIONS })).catch(refuse);
rmSync(socketPath, { force: true });
const server = new PGLiteSocketServer({ db: exclusiveSequences(pglite), path: socketPath, maxConnections: MAX_CONNECTIONS });
await server.start();

process.removeAllListeners('disconnect').once('disconnect', stop);
process.once('message', stop);
tell({ ready: true });

async function stop(): Promise<void> {
  await server.stop();
  await pglite.close();
  process.exit(0);
}

async function refuse(error: unknown): Promise<never> {
  const reason = error instanceof DataDirUnusable ? error.message : String(error);
  await new Promise<void>((done) => tell({ ready: false, reason }, done));
  process.exit(1);
}

function tell(word: Word, told?: () => void): void {
  process.send?.(word, () => told?.());
}

/**
 * The database as the socket server sees it, with one promise added: what a connection sends up to its Sync runs as a
 * whole. The server passes single messages on and keeps others out only while a transaction is open; after an error
 * none is, so that another connection's messages would come between and take the place of the unnamed statement.
 */
function exclusiveSequences(db: PGlite): PGlite {
  let open = false;
  return new Proxy(db, {
    get(target, property) {
      if (property === 'isInTransaction') return () => open || target.isInTransaction();
      if (property === 'exec') {
        return (sql: string) => {
          open = false;
          return target.exec(sql);
        };
      }
      if (property === 'execProtocolRawStream') {
        return async (message: Uint8Array, { onRawData }: Parameters<PGlite['execProtocolRawStream']>[1]) => {
          open = OPENS_SEQUENCE.has(message[0] ?? 0);
          const pass = (answer: Uint8Array) => {
            onRawData(answer);
            if (endsBackend(answer)) process.exit(1);
          };
          return target.execProtocolRawStream(message, { onRawData: pass }).catch(exitOnCrash);
        };
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

// After such an error, as when the log of what was written finds no space, PGlite would turn in a circle for ever.
function endsBackend(answer: Uint8Array): boolean {
  return answer[0] === 'E'.charCodeAt(0) && ENDS_BACKEND.test(Buffer.from(answer.subarray(0, LONGEST_START)).toString('latin1'));
}

// An SQL error comes back as a message; what is thrown here is the database itself failing. A new process is the cure.
function exitOnCrash(error: unknown): never {
  console.error(error);
  process.exit(1);
}
