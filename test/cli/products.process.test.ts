import { expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { HEADER, lines, manyRows, importSummary } from '../support/import-files.ts';
import { launch, shell, type ProcessResult } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

// What needs a process: a pipe without a reader, and SIGKILL.

const shop = useShop();

const MANY = 12_000;
const MORE_THAN_A_BATCH = 6_000;

const importRows = (rows: readonly string[]): Promise<ProcessResult> =>
  command(
    ['products', 'import', '-', '--format', 'csv'],
    workerDatabase(),
    `${HEADER}\n${rows.join('')}`,
  );

test('products export ends quietly when its reader disconnects', async () => {
  await importRows(manyRows(MORE_THAN_A_BATCH));
  const pipeline = 'node dist/src/cli/main.js products export | head -n 1; echo "${PIPESTATUS[0]}"';
  const { stdout, stderr } = await shell(pipeline, workerDatabase());
  expect([stdout, stderr]).toEqual([lines('pk,name,barcode,price,createdAt,updatedAt', '0'), '']);
});

test('products import ended by a signal can be run again, and stores each product once', async () => {
  const rows = manyRows(MANY);
  const { child, ended } = launch(
    'cli/main.js',
    ['products', 'import', '-', '--format', 'csv'],
    workerDatabase(),
  );
  child.stdin
    ?.on('error', () => undefined)
    .write(`${HEADER}\n${rows.slice(0, MORE_THAN_A_BATCH).join('')}`);
  await until(async () => (await countOf('product')) > 0, 'the first batch');
  child.kill('SIGKILL');
  expect(await ended).toEqual({ code: null, stdout: '', stderr: '' });
  const done = await countOf('product');
  expect(done).toBeLessThan(MANY);
  const { stdout } = await importRows(rows);
  expect(stdout).toBe(importSummary({ created: MANY - done, unchanged: done }));
  expect(await countOf('product')).toBe(MANY);
});

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}
