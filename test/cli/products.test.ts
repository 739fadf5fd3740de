import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { HEADER, INK, lines, manyRows, importSummary, withFiles } from '../support/import-files.ts';
import type { ProcessResult } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();

const LAMP = '"Lamp, ""tall""",4006381333931,0.10';
const EXPORTED = 'pk,name,barcode,price,createdAt,updatedAt';

const products = (...args: string[]): Promise<ProcessResult> =>
  command(['products', ...args], workerDatabase());
const importInput = (input: string | Buffer, ...args: string[]): Promise<ProcessResult> =>
  command(['products', 'import', '-', ...args], workerDatabase(), input);

describe('products import', () => {
  test('imports a CSV file, and prints a summary', async () => {
    await withFiles({ 'new.csv': lines(HEADER, INK, LAMP) }, async (folder) => {
      expect(await products('import', join(folder, 'new.csv'))).toEqual({
        code: 0,
        stdout: importSummary({ created: 2 }),
        stderr: '',
      });
      expect(await products('import', join(folder, 'new.csv'))).toEqual({
        code: 0,
        stdout: importSummary({ unchanged: 2 }),
        stderr: '',
      });
    });
    expect(await stored()).toEqual([
      ['Ink', '5901234123457', '12.50'],
      ['Lamp, "tall"', '4006381333931', '0.10'],
    ]);
  });

  test.each(['new.ndjson', 'new.ndjson.gz'])(
    'detects the format and the compression of %s',
    async (name) => {
      const text = '{"name":"Ink","barcode":"5901234123457","price":12.5}\n';
      await withFiles({ [name]: name.endsWith('.gz') ? gzipSync(text) : text }, async (folder) => {
        expect(await products('import', join(folder, name))).toEqual({
          code: 0,
          stdout: importSummary({ created: 1 }),
          stderr: '',
        });
      });
      expect(await stored()).toEqual([['Ink', '5901234123457', '12.50']]);
    },
  );

  test('prints rejected rows to standard error, by line and column, imports the rest, and ends with 1', async () => {
    expect(
      await importInput(
        lines(HEADER, INK, 'A,5901234123457,1', 'B,4006381333931,1.005', 'C'),
        '--format',
        'csv',
      ),
    ).toEqual({
      code: 1,
      stdout: importSummary({ created: 1, refused: 3 }),
      stderr: lines(
        'Line 3: barcode: Duplicate barcode; first used on line 2',
        'Line 4: price: A price has at most 2 decimal places',
        'Line 5: The row has 1 cells, but the header has 3',
      ),
    });
  });

  test('--dry-run prints the summary of the import, and writes nothing', async () => {
    expect(await importInput(lines(HEADER, INK, LAMP), '--format', 'csv', '--dry-run')).toEqual({
      code: 0,
      stdout: `Not written. ${importSummary({ created: 2 })}`,
      stderr: '',
    });
    expect(await stored()).toEqual([]);
  });

  test.each<[string, string, Buffer | string, string]>([
    ['that is missing', 'other.csv', '', 'ENOENT'],
    ['whose gzip is truncated', 'a.csv.gz', gzipSync(HEADER).subarray(0, -6), 'unexpected end'],
    ['that is not gzip', 'a.csv.gz', HEADER, 'incorrect header check'],
    ['without a header', 'a.csv', INK, 'The header lacks the columns name, barcode, price'],
  ])('rejects a file %s', async (_what, name, content, message) => {
    await withFiles({ [name.replace('other', 'a')]: content }, async (folder) => {
      expect(await products('import', join(folder, name))).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(message),
      });
    });
  });
});

describe('products export', () => {
  test('writes all products by primary key, and importing them changes nothing', async () => {
    await shop.makeProduct({ name: 'Lamp, "tall"', barcode: '4006381333931', price: '0.10' });
    await shop.makeProduct({ name: '=1+1', barcode: '0012345678905', price: '9999999999.99' });
    await shop.makeProduct({ name: '\\é🧀', barcode: '5901234123457', price: '7' });
    const { code, stdout, stderr } = await products('export');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.replace(/\d{4}-[\d-]+T[\d:.]+Z/g, 'TIME')).toBe(
      lines(
        EXPORTED,
        '1,"Lamp, ""tall""",4006381333931,0.10,TIME,TIME',
        '2,"=1+1",0012345678905,9999999999.99,TIME,TIME',
        '3,"\\é🧀",5901234123457,7,TIME,TIME',
      ),
    );
    const ndjson = (await products('export', '--format', 'ndjson')).stdout;
    const before = await stored();
    for (const [format, text] of Object.entries({ csv: stdout, ndjson })) {
      await shop.empty();
      expect(await importInput(text, '--format', format)).toEqual({
        code: 0,
        stdout: importSummary({ created: 3 }),
        stderr: '',
      });
      expect(
        (await stored()).map(([name, barcode, price]) => [name, barcode, Number(price)]),
      ).toEqual(before.map(([name, barcode, price]) => [name, barcode, Number(price)]));
      expect(await importInput(text, '--format', format)).toMatchObject({
        stdout: importSummary({ unchanged: 3 }),
      });
    }
  });

  test('has every product once, with any number of batches', async () => {
    const names = manyRows(6_001);
    await importInput(`${HEADER}\n${names.join('')}`, '--format', 'csv');
    await shop.sql('delete from product where pk % 7 = 0');
    const { stdout } = await products('export');
    const pks = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((row) => Number(row.split(',')[0]));
    expect(pks).toEqual(
      (await shop.sql('select pk::int from product order by pk')).map(({ pk }) => pk),
    );
  });

  test('writes a file in the format of its name, compressed by its name', async () => {
    await shop.makeProduct({ name: 'Ink' });
    await withFiles({}, async (folder) => {
      const [plain, compressed] = [join(folder, 'a.ndjson'), join(folder, 'b.csv.gz')];
      expect(await products('export', plain)).toEqual({
        code: 0,
        stdout: `Products in ${plain}: 1.\n`,
        stderr: '',
      });
      await products('export', compressed);
      expect(JSON.parse(await readFile(plain, 'utf8'))).toMatchObject({ name: 'Ink' });
      expect(gunzipSync(await readFile(compressed)).toString()).toMatch(/^pk,name,.*\n1,"Ink",/);
      expect(await readdir(folder)).toEqual(['a.ndjson', 'b.csv.gz']);
    });
  });

  test('replaces a file only when it is complete', async () => {
    await withFiles({ 'a.csv': 'before' }, async (folder) => {
      await shop.sql('alter table product rename to product_away');
      const rejected = await products('export', join(folder, 'a.csv')).finally(() =>
        shop.sql('alter table product_away rename to product'),
      );
      expect(rejected).toMatchObject({ code: 1, stdout: '' });
      expect(await readFile(join(folder, 'a.csv'), 'utf8')).toBe('before');
    });
  });
});

async function stored(): Promise<unknown[][]> {
  return (await shop.sql('select name, barcode, price::text from product order by pk')).map((row) =>
    Object.values(row),
  );
}
