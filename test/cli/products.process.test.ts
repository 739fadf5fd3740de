import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { HEADER, lines, manyRows, importSummary, withFiles } from '../support/import-files.ts';
import { launch, onTerminal, shell, type ProcessResult } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

// What needs a process: a terminal, a pipe without a reader, system limits, and SIGKILL.

const shop = useShop();

const MANY = 12_000;
const MORE_THAN_A_BATCH = 6_000;

const importRows = (rows: readonly string[]): Promise<ProcessResult> =>
  command(
    ['products', 'import', '-', '--format', 'csv'],
    workerDatabase(),
    `${HEADER}\n${rows.join('')}`,
  );

test('products import ends when the error file is full, though a part was written', async () => {
  await withFiles(
    { 'new.csv': lines(HEADER, ...Array<string>(300).fill('A,5901234123457,x')) },
    async (folder) => {
      const errors = join(folder, 'errors.ndjson');
      // The largest file is 8 KiB.
      const limited = `trap '' XFSZ; ulimit -f 8; exec node dist/src/cli/main.js products import ${folder}/new.csv --errors ${errors}`;
      expect(await shell(limited, workerDatabase())).toMatchObject({
        code: 1,
        stderr: `${errors} cannot be written (EFBIG)\n`,
      });
      expect((await stat(errors)).size).toBe(8 * 1024);
    },
  );
});

test('products import: Ctrl-C on a terminal with a bar stores the current batch, and prints the summary', async () => {
  await withFiles({}, async (folder) => {
    const rows = join(folder, 'rows');
    await shell(`mkfifo ${rows}`, {});
    const { child, ended } = onTerminal(
      `exec node dist/src/cli/main.js products import - --format csv < ${rows}`,
      workerDatabase(),
    );
    let drawn = '';
    child.stdout?.on('data', (chunk: Buffer) => (drawn += chunk.toString()));
    const writing = createWriteStream(rows).on('error', () => undefined);
    writing.write(`${HEADER}\n${manyRows(MORE_THAN_A_BATCH).join('')}`);
    await until(() => drawn.includes('Created: '), 'the bar');
    child.stdin?.write('\u0003');
    const { code, stdout } = await ended;
    writing.destroy();
    expect(code).toBe(130);
    expect(stdout).toContain('The import is incomplete. Run the same command again to resume it.');
    expect(stdout).toContain(importSummary({ created: await countOf('product') }).trim());
  });
});

test('products export ends quietly when its reader disconnects', async () => {
  await importRows(manyRows(MORE_THAN_A_BATCH));
  const pipeline = 'node dist/src/cli/main.js products export | head -n 1; echo "${PIPESTATUS[0]}"';
  const { stdout, stderr } = await shell(pipeline, workerDatabase());
  expect([stdout, stderr]).toEqual([lines('pk,name,barcode,price,createdAt,updatedAt', '0'), '']);
});

test('products import ended by SIGKILL resumes when it is run again, and stores each product once', async () => {
  const rows = manyRows(MANY);
  const { child, ended } = launch(
    'cli/main.js',
    ['products', 'import', '-', '--format', 'csv'],
    workerDatabase(),
  );
  child.stdin
    ?.on('error', () => undefined)
    .write(`${HEADER}\n${rows.slice(0, MORE_THAN_A_BATCH).join('')}`);
  await until(async () => (await countOf('product_import_batch')) > 0, 'the first batch');
  child.kill('SIGKILL');
  expect(await ended).toEqual({ code: null, stdout: '', stderr: '' });
  const done = await countOf('product');
  expect(done).toBeLessThan(MANY);
  const { stdout } = await importRows(rows);
  expect(stdout).toBe(importSummary({ created: MANY - done, skipped: done }));
  expect(await countOf('product')).toBe(MANY);
});

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}
