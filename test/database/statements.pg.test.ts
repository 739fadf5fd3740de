import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '../support/jest.ts';
import pg from 'pg';
import pino from 'pino';
import { openStatements, type OpenStatements } from '../../src/database/statements.ts';
import { raw, sql, type Cell, type Sql } from '../../src/database/sql.ts';
import { workerDatabase } from '../support/shop.ts';

const connectionString = workerDatabase().DATABASE_URL;
const silent = pino({ level: 'silent' });

/** Another session that holds locks, terminates backends, and sees lock waits. */
let other: pg.Client;
let opened: { statements: OpenStatements; pool: pg.Pool }[] = [];

beforeAll(async () => {
  other = await connected();
  await other.query(`
    drop schema if exists scratch cascade;
    create schema scratch;
    create table scratch.held as select n, 'held ' || n as text from generate_series(1, 100) as n;
    create table scratch.free as select n, 'free ' || n as text from generate_series(1, 100) as n;
    create table scratch.named (name text unique)`);
});

beforeEach(async () => {
  await other.query('truncate scratch.named');
});

afterEach(async () => {
  jest.restoreAllMocks();
  await other.query('rollback');
  await Promise.all(opened.map(({ statements }) => statements.close()));
  await Promise.all(opened.map(({ pool }) => pool.end()));
  opened = [];
});

afterAll(async () => {
  await other.query('drop schema scratch cascade');
  await other.end();
});

test('a prepared read is parsed once per connection, for any values', async () => {
  const statements = open({ max: 1, pipelined: 1 });
  const parsed = parses();
  await pipelinedPid(statements);
  for (let n = 1; n <= 50; n++)
    expect(await statements.read(numbered(n), true)).toEqual([[String(n), `free ${n}`]]);
  await Promise.all(Array.from({ length: 50 }, (_, n) => statements.read(numbered(n + 1), true)));

  const named = parsed.filter(({ text }) => text === numbered(0).text);
  expect(named).toHaveLength(1);
  expect(named[0]?.name).toMatch(/./);
});

test('a prepared read on the pool is parsed once per connection', async () => {
  const statements = open({ max: 2, pipelined: 0 });
  const parsed = parses();
  for (let time = 0; time < 5; time++) {
    const rows = await Promise.all(
      Array.from({ length: 20 }, (_, n) => statements.read(numbered(n + 1), true)),
    );
    expect(rows).toEqual(Array.from({ length: 20 }, (_, n) => [[String(n + 1), `free ${n + 1}`]]));
  }

  expect(parsed.filter(({ text }) => text === numbered(0).text)).toHaveLength(2);
});

test('an unprepared read is parsed each time, without a name, and not on a pipelined connection', async () => {
  const statements = open({ max: 1, pipelined: 1 });
  const pipelined = await pipelinedPid(statements);
  const parsed = parses();
  const pids = new Set<Cell>();
  for (let time = 0; time < 5; time++) pids.add((await statements.read(PID))[0]?.[0]);

  expect(parsed).toEqual(Array.from({ length: 5 }, () => ({ text: PID.text })));
  expect(pids.size).toBe(1);
  expect(pids).not.toContain(pipelined);
});

test('without prepared statements, a prepared read has no name', async () => {
  const statements = open({ max: 1, pipelined: 1, prepares: false });
  await pipelinedPid(statements);
  const parsed = parses();
  for (let n = 1; n <= 3; n++)
    expect(await statements.read(numbered(n), true)).toEqual([[String(n), `free ${n}`]]);

  expect(parsed).toEqual(Array.from({ length: 3 }, () => ({ text: numbered(0).text })));
});

test('P14 a connection keeps the last used 250 pages and 250 others, for any number of statements', async () => {
  const statements = open({ max: 1, pipelined: 0 });
  const cached = async () => {
    const rows = await statements.read(raw('select statement from pg_prepared_statements'));
    return rows.map(([text]) => String(text));
  };
  await statements.read(numbered(1), true);
  const parsed = parses();
  for (let limit = 1; limit <= 600; limit++) {
    await statements.read(raw(`select 1 limit ${limit}`), true);
    if (limit % 100 === 0) await statements.read(raw('select 1 limit 1'), true);
  }
  expect(await cached()).toHaveLength(251);
  expect(await cached()).toEqual(
    expect.arrayContaining([
      numbered(1).text,
      'select 1 limit 1',
      'select 1 limit 352',
      'select 1 limit 600',
    ]),
  );
  for (let number = 1; number <= 300; number++)
    await statements.read(raw(`select ${number}`), true);
  expect(await cached()).toHaveLength(500);
  expect(await cached()).not.toContain(numbered(1).text);

  expect(await statements.read(numbered(1), true)).toEqual([['1', 'free 1']]);
  expect(await cached()).toContain(numbered(1).text);
  expect(parsed.filter(({ text }) => text === 'select 1 limit 1')).toHaveLength(1);
});

test('concurrent prepared reads get their own rows, in order, beyond the limit of the pipelined connections', async () => {
  const statements = open({ max: 3, pipelined: 2 });
  const pipelined = await pipelinedPid(statements);
  const series = (n: number) =>
    sql`select n, ${`of ${n}`}::text, pg_backend_pid() from generate_series(${n}::int, ${n}::int + ${n % 5}::int) as n`;

  const all = await Promise.all(
    Array.from({ length: 500 }, (_, n) => statements.read(series(n), true)),
  );

  expect(all.map((rows) => rows.map(([number, text]) => [number, text]))).toEqual(
    Array.from({ length: 500 }, (_, n) =>
      [...Array(1 + (n % 5)).keys()].map((more) => [String(n + more), `of ${n}`]),
    ),
  );
  const pids = all.map((rows) => rows[0]?.[2]);
  expect(pids).toContain(pipelined);
  expect(new Set(pids).size).toBeGreaterThan(2);
});

test('a failing prepared read does not affect other reads or the pipelined connection', async () => {
  const statements = open({ max: 1, pipelined: 1 });
  const pipelined = await pipelinedPid(statements);
  const divided = (n: number) => sql`select 100 / ${n}::int, pg_backend_pid()`;

  const settled = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => statements.read(divided(n % 7), true)),
  );

  expect(
    settled.map((result) =>
      result.status === 'fulfilled' ? result.value : (result.reason as { code: string }).code,
    ),
  ).toEqual(
    Array.from({ length: 20 }, (_, n) =>
      n % 7 === 0 ? '22012' : [[String(Math.trunc(100 / (n % 7))), pipelined]],
    ),
  );
  expect(await statements.read(divided(3), true)).toEqual([['33', pipelined]]);
});

test('a prepared read that cannot be parsed fails, and succeeds once it can', async () => {
  const statements = open({ max: 1, pipelined: 1 });
  const pipelined = await pipelinedPid(statements);
  const later = sql`select name, pg_backend_pid() from scratch.later`;
  const settled = await Promise.allSettled([
    statements.read(later, true),
    statements.read(numbered(1), true),
  ]);
  expect(settled).toMatchObject([{ reason: { code: '42P01' } }, { value: [['1', 'free 1']] }]);

  await other.query(`create table scratch.later as select 'here' as name`);
  expect(await statements.read(later, true)).toEqual([['here', pipelined]]);
});

// At present the reads behind it fail with 26000, because they rely on the failed Parse.
test('a prepared read cancelled during Parse does not fail those of the same statement behind it', async () => {
  const statements = open({ max: 4, pipelined: 1 });
  const pipelined = await pipelinedPid(statements);
  await other.query('begin; lock table scratch.held');
  const first = statements.read(held(1), true).catch((error: { code: string }) => error.code);
  const rest = Promise.allSettled([2, 3].map((n) => statements.read(held(n), true)));
  await waitsForLock(pipelined);
  await other.query('select pg_cancel_backend($1)', [pipelined]);
  expect(await first).toBe('57014');
  await other.query('commit');

  expect(await rest).toEqual(
    [2, 3].map((n) => ({ status: 'fulfilled', value: [[String(n), `held ${n}`]] })),
  );
});

test('prepared reads on a pipelined connection all succeed when its backend is terminated', async () => {
  const statements = open({ max: 4, pipelined: 1 });
  const pipelined = await pipelinedPid(statements);
  await other.query('begin; lock table scratch.held');
  const reads = [
    statements.read(held(1), true),
    ...Array.from({ length: 30 }, (_, n) => statements.read(numbered(n + 1), true)),
  ];
  await waitsForLock(pipelined);

  await other.query('select pg_terminate_backend($1)', [pipelined]);
  const after = Array.from({ length: 30 }, (_, n) => statements.read(numbered(n + 1), true));
  expect(await Promise.all(after)).toEqual(freeRows(30));
  await other.query('commit');
  expect(await Promise.all(reads)).toEqual([[['1', 'held 1']], ...freeRows(30)]);
});

test('a pipelined connection whose backend is terminated while idle is reopened', async () => {
  const statements = open({ max: 2, pipelined: 1 });
  const first = await pipelinedPid(statements);
  await other.query('select pg_terminate_backend($1)', [first]);
  expect(
    await Promise.all(Array.from({ length: 30 }, (_, n) => statements.read(numbered(n + 1), true))),
  ).toEqual(freeRows(30));

  const second = await pipelinedPid(statements);
  expect(second).not.toBe(first);
  expect(await statements.read(numbered(1), true)).toEqual([['1', 'free 1']]);
});

test('a locked table blocks its reads, and others on the connection only briefly', async () => {
  const statements = open({ max: 3, pipelined: 1 });
  await pipelinedPid(statements);
  await other.query('begin; lock table scratch.held');
  let isHeld = true;
  const blocked = statements.read(held(1), true).finally(() => (isHeld = false));
  const others = await Promise.all(
    Array.from({ length: 90 }, (_, n) => statements.read(numbered(n + 1), true)),
  );

  expect(isHeld).toBe(true);
  expect(others).toEqual(freeRows(90));
  await other.query('commit');
  expect(await blocked).toEqual([['1', 'held 1']]);
});

test('a read on the pool is retried once when its backend is terminated, and a write is not', async () => {
  const statements = open({ max: 1, pipelined: 0 });
  const pid = async () => (await statements.read(PID))[0]?.[0];
  await other.query('begin; lock table scratch.held, scratch.named');
  const first = await pid();
  const read = statements.read(held(1));
  await waitsForLock(first);
  await other.query('select pg_terminate_backend($1)', [first]);
  await other.query('rollback; begin; lock table scratch.named');
  expect(await read).toEqual([['1', 'held 1']]);

  const second = await pid();
  const write = statements.write(sql`insert into scratch.named (name) values ('once')`);
  const rejected = write.catch((error: { code: string }) => error.code);
  await waitsForLock(second);
  await other.query('select pg_terminate_backend($1)', [second]);
  expect(await rejected).toBe('57P01');
  await other.query('rollback');
});

test('a rejected write leaves the pool connection and its prepared statements', async () => {
  const statements = open({ max: 1, pipelined: 0 });
  const name = (text: string) =>
    sql`insert into scratch.named (name) values (${text}) returning pg_backend_pid()`;
  const parsed = parses();
  const [[before] = []] = await statements.write(name('ada'));
  await expect(statements.write(name('ada'))).rejects.toMatchObject({ code: '23505' });
  const [[after] = []] = await statements.write(name('max'));

  expect(after).toBe(before);
  expect(parsed).toHaveLength(1);
});

test('commits counts only successful writes', async () => {
  const statements = open({ max: 1, pipelined: 0 });
  const name = sql`insert into scratch.named (name) values ('ada')`;
  expect(statements.commits).toBe(0);
  await statements.write(name);
  expect(statements.commits).toBe(1);
  await statements.write(name).catch(() => undefined);
  await statements.read(numbered(1), true);
  expect(statements.commits).toBe(1);
});

test('values reach PostgreSQL unchanged: text, numbers, times, lists, bytes, and null', async () => {
  const statements = open({ max: 1, pipelined: 1 });
  await pipelinedPid(statements);
  const values = [
    `'; drop "\\ 🪑`,
    1.5,
    new Date('2026-03-01T00:00:00.123Z'),
    ['a', 'b"c', null],
    Buffer.from([0, 255]),
    null,
    true,
  ];
  const statement = sql`
    select ${values[0]}::text, ${values[1]}::numeric, ${values[2]}::timestamptz = '2026-03-01 00:00:00.123Z', ${values[3]}::text[], ${values[4]}::bytea, ${values[5]}::int, ${values[6]}::bool`;

  for (const prepared of [true, false]) {
    expect(await statements.read(statement, prepared)).toEqual([
      [`'; drop "\\ 🪑`, '1.5', 't', '{a,"b\\"c",NULL}', '\\x00ff', null, 't'],
    ]);
  }
});

const PID = raw('select pg_backend_pid()');

function numbered(n: number): Sql {
  return sql`select n, text from scratch.free where n = ${n}`;
}

function held(n: number): Sql {
  return sql`select n, text from scratch.held where n = ${n}`;
}

function freeRows(count: number): Cell[][][] {
  return Array.from({ length: count }, (_, n) => [[String(n + 1), `free ${n + 1}`]]);
}

function open({
  max,
  pipelined,
  prepares = true,
}: {
  max: number;
  pipelined: number;
  prepares?: boolean;
}): OpenStatements {
  const pool = new pg.Pool({ connectionString, max });
  // As in the ORM.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const statements = openStatements(
    pool,
    { connectionString },
    { prepares, pipelineConnections: pipelined },
    silent,
  );
  opened.push({ statements, pool });
  return statements;
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** The backend of a pipelined connection; the first reads open it while using the pool. */
async function pipelinedPid(statements: OpenStatements): Promise<Cell> {
  const pooled = new Set<Cell>();
  const { pool } = opened.find((one) => one.statements === statements) ?? {};
  if (!pool) throw new Error('statements not opened by this test');
  // All connections of the pool, so that any other is pipelined.
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  for (const client of clients) {
    pooled.add(
      String((await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid),
    );
    client.release();
  }
  for (;;) {
    const [[pid] = []] = await statements.read(PID, true);
    if (!pooled.has(pid)) return pid;
  }
}

async function waitsForLock(pid: Cell): Promise<void> {
  let waits = false;
  while (!waits) {
    const { rows } = await other.query(
      `select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`,
      [pid],
    );
    waits = rows.length > 0;
  }
}

/** Returns a list of the Parse messages sent from now on. */
function parses(): { name?: string; text: string }[] {
  const parsed: { name?: string; text: string }[] = [];
  const parse = Reflect.get(pg.Connection.prototype, 'parse');
  jest.spyOn(pg.Connection.prototype, 'parse').mockImplementation(function (
    this: pg.Connection,
    query,
    more,
  ) {
    parsed.push(query);
    Reflect.apply(parse, this, [query, more]);
  });
  return parsed;
}
