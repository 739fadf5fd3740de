import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { exportCatalogue } from '../../src/features/products/files/file-export.ts';
import { command, startCommand } from '../support/command.ts';
import { startPooler } from '../support/pgbouncer.ts';
import { withDirectory } from '../support/directories.ts';
import { HEADER, manyRows, importSummary } from '../support/import-files.ts';
import type { ProcessResult } from '../support/process.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

// Imports and exports with a server: lost connections, a pooler, rolled back transactions,
// and one snapshot.

const shop = useShop();
const other = useSecondSession();

const BATCH = 5_000;

afterEach(async () => {
  await other.query('drop schema if exists conflicts cascade');
});

const importRows = (rows: readonly string[], env = workerDatabase()): Promise<ProcessResult> =>
  command(['products', 'import', '-', '--format', 'csv'], env, `${HEADER}\n${rows.join('')}`);

test('an import that loses its connections reports it, and can be run again', async () => {
  const rows = manyRows(3 * BATCH);
  const { stdin, ended } = startCommand(
    ['products', 'import', '-', '--format', 'csv'],
    workerDatabase(),
  );
  stdin.write(`${HEADER}\n${rows.slice(0, BATCH + 1_000).join('')}`);
  await until(async () => (await countOf('product')) === BATCH, 'the first batch');
  await other.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`,
  );
  await other.query('alter table product rename to product_away');
  stdin.end(rows.slice(BATCH + 1_000).join(''));
  const { code, stdout, stderr } = await ended.finally(() =>
    other.query('alter table product_away rename to product'),
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).not.toBe('');
  expect(await importRows(rows)).toEqual({
    code: 0,
    stdout: importSummary({ created: 2 * BATCH, unchanged: BATCH }),
    stderr: '',
  });
  expect(await countOf('product')).toBe(3 * BATCH);
});

test('a batch rolled back by PostgreSQL because of a conflict is retried, and stored once', async () => {
  await other.query(`
    create schema conflicts;
    create sequence conflicts.attempts;
    create function conflicts.undo() returns trigger language plpgsql as $$
    begin
      if nextval('conflicts.attempts') <= 2 then raise exception 'undone' using errcode = '40P01'; end if;
      return null;
    end $$;
    create trigger undo after insert on product for each statement execute function conflicts.undo()`);
  expect(await importRows(manyRows(10))).toEqual({
    code: 0,
    stdout: importSummary({ created: 10 }),
    stderr: '',
  });
});

test('a batch is looked up by its barcodes, without a scan of the catalogue', async () => {
  await importRows(manyRows(2 * BATCH));
  await other.query('analyze product');
  const scans = async () => {
    const { rows } = await other.query<{ whole: string; by_index: string }>(
      `select seq_scan as whole, idx_scan as by_index from pg_stat_user_tables where relname = 'product'`,
    );
    return { whole: Number(rows[0]?.whole), byIndex: Number(rows[0]?.by_index) };
  };
  const before = await scans();
  await importRows(manyRows(BATCH).map((row) => row.replace('1.00', '2.00')));
  await until(async () => (await scans()).byIndex >= before.byIndex + BATCH, 'the look-ups');
  expect((await scans()).whole).toBe(before.whole);
});

test('an import works through a pooler with transaction pooling, with one connection and with several', async () => {
  await withDirectory(async (folder) => {
    // It runs as another user, who needs access to the directory.
    await chmod(folder, 0o711);
    const url = new URL(workerDatabase().DATABASE_URL);
    url.port ||= '5432';
    const pooler = await startPooler(join(folder, 'pgbouncer'), url.href, 1);
    try {
      const env = { DATABASE_URL: pooler.url, DATABASE_POOLER: 'transaction' };
      const rows = manyRows(2 * BATCH);
      const found = await Promise.all([
        importRows(rows, env),
        importRows(rows.toReversed(), env),
        command(['products', 'export'], env),
      ]);
      expect(found.map(({ code, stderr }) => `${code} ${stderr}`)).toEqual(['0 ', '0 ', '0 ']);
      expect(await countOf('product')).toBe(2 * BATCH);
    } finally {
      await pooler.stop();
    }
  });
});

describe('an export', () => {
  test('is one snapshot, whatever is written meanwhile', async () => {
    await importRows(manyRows(2 * BATCH));
    const reading = exportCatalogue(shop.context(), 'csv');
    const chunks = [await reading.next(), await reading.next()].map(({ value }) => value?.text);
    await other.query(`delete from product where pk % 2 = 0`);
    await other.query(`update product set name = 'Changed'`);
    await other.query(
      `insert into product (name, barcode, price, created_at, updated_at) values ('New', '5901234123457', 1, now(), now())`,
    );
    for await (const { text } of reading) chunks.push(text);
    const lines = chunks.join('').trimEnd().split('\n').slice(1);
    expect(lines).toHaveLength(2 * BATCH);
    expect(lines.every((line, index) => line.startsWith(`${index + 1},"Row ${index}",`))).toBe(
      true,
    );
  });

  test('that is aborted leaves no open transaction', async () => {
    await importRows(manyRows(2 * BATCH));
    for await (const { count } of exportCatalogue(shop.context(), 'csv')) if (count > 0) break;
    const { rows } = await other.query(
      `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`,
    );
    expect(rows).toEqual([]);
  });
});

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}
