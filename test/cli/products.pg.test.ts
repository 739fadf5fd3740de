import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { catalogueAsFile } from '../../src/features/products/files/file-export.ts';
import { command, startCommand } from '../support/command.ts';
import { startPooler } from '../support/pgbouncer.ts';
import { withDirectory } from '../support/directories.ts';
import { HEADER, manyRows, told } from '../support/import-files.ts';
import type { Ended } from '../support/process.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

// What an import and an export have of a server alone: connections that are lost, a pooler, transactions that are undone, and one moment of it.

const shop = useShop();
const other = useSecondSession();

const BATCH = 5_000;

afterEach(async () => {
  await other.query('drop schema if exists conflicts cascade');
});

const fed = (rows: readonly string[], env = workerDatabase()): Promise<Ended> =>
  command(['products', 'import', '-', '--format', 'csv'], env, `${HEADER}\n${rows.join('')}`);

test('an import whose connections are lost says so, and goes on where it stopped when it is run again', async () => {
  const rows = manyRows(3 * BATCH);
  const { stdin, ended } = startCommand(['products', 'import', '-', '--format', 'csv'], workerDatabase());
  stdin.write(`${HEADER}\n${rows.slice(0, BATCH + 1_000).join('')}`);
  await until(async () => (await countOf('product')) === BATCH, 'the first batch');
  await other.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`,
  );
  await other.query('alter table product rename to product_away');
  stdin.end(rows.slice(BATCH + 1_000).join(''));
  const { code, stdout, stderr } = await ended.finally(() => other.query('alter table product_away rename to product'));
  expect([code, stdout]).toEqual([1, told({ created: BATCH })]);
  expect(stderr).toContain('This is not all: the same command again goes on from here.\n');
  expect(await fed(rows)).toEqual({ code: 0, stdout: told({ created: 2 * BATCH, skipped: BATCH }), stderr: '' });
  expect(await countOf('product')).toBe(3 * BATCH);
});

test('a batch that PostgreSQL undoes because of others is stored at another attempt, once', async () => {
  await other.query(`
    create schema conflicts;
    create sequence conflicts.attempts;
    create function conflicts.undo() returns trigger language plpgsql as $$
    begin
      if nextval('conflicts.attempts') <= 2 then raise exception 'undone' using errcode = '40P01'; end if;
      return null;
    end $$;
    create trigger undo after insert on product for each statement execute function conflicts.undo()`);
  expect(await fed(manyRows(10))).toEqual({ code: 0, stdout: told({ created: 10 }), stderr: '' });
});

test('a batch is looked up by its barcodes: the catalogue is not read for it', async () => {
  await fed(manyRows(2 * BATCH));
  await other.query('analyze product');
  const scans = async () => {
    const { rows } = await other.query<{ whole: string; by_index: string }>(
      `select seq_scan as whole, idx_scan as by_index from pg_stat_user_tables where relname = 'product'`,
    );
    return { whole: Number(rows[0]?.whole), byIndex: Number(rows[0]?.by_index) };
  };
  const before = await scans();
  await fed(manyRows(BATCH).map((row) => row.replace('1.00', '2.00')));
  await until(async () => (await scans()).byIndex >= before.byIndex + BATCH, 'the look-ups');
  expect((await scans()).whole).toBe(before.whole);
});

test('an import goes through a pooler that lends connections by the transaction, with one connection and with others beside', async () => {
  await withDirectory(async (folder) => {
    // It runs as another user, who has to get there.
    await chmod(folder, 0o711);
    const url = new URL(workerDatabase()['DATABASE_URL'] ?? '');
    url.port ||= '5432';
    const pooler = await startPooler(join(folder, 'pgbouncer'), url.href, 1);
    try {
      const env = { DATABASE_URL: pooler.url, DATABASE_POOLER: 'transaction' };
      const rows = manyRows(2 * BATCH);
      const found = await Promise.all([fed(rows, env), fed(rows.toReversed(), env), command(['products', 'export'], env)]);
      expect(found.map(({ code, stderr }) => `${code} ${stderr}`)).toEqual(['0 ', '0 ', '0 ']);
      expect(await countOf('product')).toBe(2 * BATCH);
    } finally {
      await pooler.stop();
    }
  });
});

describe('an export', () => {
  test('is as of one moment, whatever is written meanwhile', async () => {
    await fed(manyRows(2 * BATCH));
    const reading = catalogueAsFile(shop.context(), 'csv');
    const pieces = [await reading.next(), await reading.next()].map(({ value }) => value?.text);
    await other.query(`delete from product where pk % 2 = 0`);
    await other.query(`update product set name = 'Changed'`);
    await other.query(
      `insert into product (name, barcode, price, created_at, updated_at) values ('New', '5901234123457', 1, now(), now())`,
    );
    for await (const { text } of reading) pieces.push(text);
    const lines = pieces.join('').trimEnd().split('\n').slice(1);
    expect(lines).toHaveLength(2 * BATCH);
    expect(lines.every((line, index) => line.startsWith(`${index + 1},"Row ${index}",`))).toBe(true);
  });

  test('that is left in the middle leaves no transaction behind', async () => {
    await fed(manyRows(2 * BATCH));
    for await (const { count } of catalogueAsFile(shop.context(), 'csv')) if (count > 0) break;
    const { rows } = await other.query(
      `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`,
    );
    expect(rows).toEqual([]);
  });
});

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}
