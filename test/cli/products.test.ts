import { createReadStream, openSync, type ReadStream } from 'node:fs';
import { link, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from '../support/jest.ts';
import { command, startCommand, type RunningCommand } from '../support/command.ts';
import { HEADER, INK, lines, manyRows, told, withFiles } from '../support/import-files.ts';
import type { Ended } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();

const LAMP = '"Lamp, ""tall""",4006381333931,0.10';
const EXPORTED = 'pk,name,barcode,price,createdAt,updatedAt';

const products = (...args: string[]): Promise<Ended> => command(['products', ...args], workerDatabase());
const fed = (input: string | Buffer, ...args: string[]): Promise<Ended> =>
  command(['products', 'import', '-', ...args], workerDatabase(), input);
/** Starts an import of which more is to come, and waits until a batch of it is stored. */
const startImport = async (rows: readonly string[], ...args: string[]): Promise<RunningCommand> => {
  const running = startCommand(['products', 'import', '-', '--format', 'csv', ...args], workerDatabase());
  running.stdin.write(`${HEADER}\n${rows.join('')}`);
  await until(async () => (await countOf('product_import_batch')) > 0, 'the first batch');
  return running;
};

describe('products import', () => {
  test('imports a CSV file, and says what became of its rows', async () => {
    await withFiles({ 'new.csv': lines(HEADER, INK, LAMP) }, async (folder) => {
      expect(await products('import', join(folder, 'new.csv'))).toEqual({ code: 0, stdout: told({ created: 2 }), stderr: '' });
      expect(await products('import', join(folder, 'new.csv'))).toEqual({ code: 0, stdout: told({ left: 2 }), stderr: '' });
    });
    expect(await stored()).toEqual([
      ['Ink', '5901234123457', '12.50'],
      ['Lamp, "tall"', '4006381333931', '0.10'],
    ]);
  });

  test.each(['new.ndjson', 'new.jsonl', 'NEW.NDJSON', 'new.ndjson.gz'])('knows the format and the packing of %s', async (name) => {
    const text = '{"name":"Ink","barcode":"5901234123457","price":12.5}\n';
    await withFiles({ [name]: name.endsWith('.gz') ? gzipSync(text) : text }, async (folder) => {
      expect(await products('import', join(folder, name))).toEqual({ code: 0, stdout: told({ created: 1 }), stderr: '' });
    });
    expect(await stored()).toEqual([['Ink', '5901234123457', '12.50']]);
  });

  test('reads standard input, packed or not', async () => {
    expect(await fed(lines(HEADER, INK), '--format', 'csv')).toEqual({ code: 0, stdout: told({ created: 1 }), stderr: '' });
    expect(await fed(gzipSync(lines(HEADER, INK)), '--format', 'csv')).toEqual({ code: 0, stdout: told({ left: 1 }), stderr: '' });
  });

  test('tells of rows that are refused on standard error, by line and column, imports the rest, and ends with 1', async () => {
    expect(await fed(lines(HEADER, INK, 'A,5901234123457,1', 'B,4006381333931,1.005', '"'), '--format', 'csv')).toEqual({
      code: 1,
      stdout: told({ created: 1, refused: 3 }),
      stderr: lines(
        'Line 3: barcode: The barcode stands on line 2, too',
        'Line 4: price: A price has at most 2 decimal places',
        'Line 5: A quotation mark is not closed, or stands where none may be',
      ),
    });
  });

  test('tells no more than the first twenty of many', async () => {
    const { stderr } = await fed(lines(HEADER, ...Array<string>(30).fill('A,1')), '--format', 'csv');
    expect(stderr.split('\n').slice(18)).toEqual([
      'Line 20: The row has 2 cells, the header 3',
      'Line 21: The row has 2 cells, the header 3',
      'And 10 more; --errors FILE keeps them all.',
      '',
    ]);
  });

  test('tells of all of them in a file that --errors names', async () => {
    await withFiles({ 'new.csv': lines(HEADER, ...Array<string>(30).fill('A,5901234123457,x')) }, async (folder) => {
      const errors = join(folder, 'errors.ndjson');
      expect(await products('import', join(folder, 'new.csv'), '--errors', errors)).toEqual({
        code: 1,
        stdout: told({ refused: 30 }),
        stderr: '',
      });
      const found = (await readFile(errors, 'utf8')).trim().split('\n');
      expect(found).toHaveLength(30);
      expect(JSON.parse(found[29] ?? '')).toEqual({ line: 31, column: 'price', type: 'decimal_parsing', message: expect.any(String) });
    });
  });

  test('--dry-run tells what would become of the rows, and writes nothing', async () => {
    expect(await fed(lines(HEADER, INK, LAMP), '--format', 'csv', '--dry-run')).toEqual({
      code: 0,
      stdout: 'To create: 2. To change: 0. To leave as they are: 0. Refused: 0.\n',
      stderr: '',
    });
    expect(await stored()).toEqual([]);
  });

  test('--stop-on-error stops at the first row that is refused', async () => {
    expect(await fed(lines(HEADER, INK, 'A', LAMP), '--format', 'csv', '--stop-on-error')).toMatchObject({
      code: 1,
      stdout: told({ created: 1, refused: 1 }),
    });
  });

  test.each<[string, Buffer | string, string]>([
    ['that is empty', '', 'The file is empty\n'],
    ['whose gzip is cut short', gzipSync(lines(HEADER, INK)).subarray(0, -6), 'Standard input is cut short: its gzip data has no end\n'],
    ['whose gzip is damaged', damaged(), 'Standard input is damaged: it is no good gzip data\n'],
    ['without a header', INK, 'lacks "name", "barcode", "price"'],
  ])('refuses a file %s', async (_what, input, message) => {
    expect(await fed(input, '--format', 'csv')).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(message) });
  });

  test('a file whose gzip is cut short is imported up to there, and is not said to go on when it is imported again as it is', async () => {
    const whole = gzipSync(`${HEADER}\n${manyRows(12_000).join('')}`);
    const { code, stdout, stderr } = await fed(whole.subarray(0, -6), '--format', 'csv');
    const done = await countOf('product');
    expect(done).toBeGreaterThan(0);
    expect([code, stdout]).toEqual([1, told({ created: done })]);
    expect(stderr).toBe('Standard input is cut short: its gzip data has no end\n');
    expect(await fed(whole, '--format', 'csv')).toMatchObject({ code: 0, stdout: told({ created: 12_000 - done, skipped: done }) });
  });

  test('refuses what cannot be read, and a file of errors that cannot be written, before anything is imported', async () => {
    await withFiles({ 'new.csv': lines(HEADER, INK) }, async (folder) => {
      expect(await products('import', join(folder, 'none.csv'))).toEqual({
        code: 1,
        stdout: '',
        stderr: `${folder}/none.csv cannot be read (ENOENT)\n`,
      });
      expect(await products('import', folder, '--format', 'csv')).toMatchObject({ code: 1, stderr: `${folder} cannot be read (EISDIR)\n` });
      expect(await products('import', join(folder, 'new.csv'), '--errors', folder)).toEqual({
        code: 1,
        stdout: '',
        stderr: `${folder} cannot be written (EISDIR)\n`,
      });
    });
    expect(await stored()).toEqual([]);
  });

  test.each([
    ['import'],
    ['import', '-'],
    ['import', 'products.txt'],
    ['import', 'a.csv', 'b.csv'],
    ['import', 'a.csv', '--format', 'xml'],
    ['import', './a.csv', '--errors', 'a.csv'],
  ])('wrong usage ends with 64: products %s %s %s %s', async (...args) => {
    expect(await products(...args)).toMatchObject({ code: 64, stdout: '' });
  });

  test.each([
    ['a link', link],
    ['a symbolic link', symlink],
  ])('--errors that is another name of the imported file (%s) is wrong usage, and leaves the file as it is', async (_what, makeLink) => {
    const text = lines(HEADER, INK);
    await withFiles({ 'new.csv': text }, async (folder) => {
      const [file, other] = [join(folder, 'new.csv'), join(folder, 'errors.csv')] as const;
      await makeLink(file, other);
      expect(await products('import', file, '--errors', other)).toMatchObject({ code: 64, stdout: '' });
      expect(await products('import', other, '--errors', file)).toMatchObject({ code: 64, stdout: '' });
      const stdin = createReadStream('', { fd: openSync(file, 'r') }) as ReadStream & { fd: number };
      const args = ['products', 'import', '-', '--format', 'csv', '--errors', other];
      expect(await command(args, workerDatabase(), '', { stdin })).toMatchObject({ code: 64, stdout: '' });
      stdin.destroy();
      expect(await readFile(file, 'utf8')).toBe(text);
    });
  });
});

describe('an import that is ended', () => {
  const MANY = 12_000;
  const BATCH_AND_MORE = 6_000;

  test('with --from-start does not start over once that is left out, and says so', async () => {
    const rows = manyRows(MANY);
    const { ended, interrupt } = await startImport(rows.slice(0, BATCH_AND_MORE), '--from-start');
    interrupt();
    expect(await ended).toMatchObject({
      code: 130,
      stderr: 'This is not all: the same command without --from-start goes on from here.\n',
    });
    const done = await countOf('product');
    const { stdout } = await fed(`${HEADER}\n${rows.join('')}`, '--format', 'csv');
    expect(stdout).toBe(told({ created: MANY - done, skipped: done }));
  });

  test('by SIGINT goes on where it stopped when it is run again, and each product is there once', async () => {
    const rows = manyRows(MANY);
    const { ended, interrupt } = await startImport(rows.slice(0, BATCH_AND_MORE));
    interrupt();
    const left = await ended;
    const done = await countOf('product');
    expect(left).toEqual({
      code: 130,
      stdout: told({ created: done }),
      stderr: 'This is not all: the same command again goes on from here.\n',
    });
    expect(done).toBeLessThan(MANY);
    const { stdout: second } = await fed(`${HEADER}\n${rows.join('')}`, '--format', 'csv');
    expect(second).toBe(told({ created: MANY - done, skipped: done }));
    expect(await countOf('product')).toBe(MANY);
  });
});

describe('an import on which a signal comes', () => {
  const MORE_THAN_A_BATCH = 6_000;
  const UNFINISHED = 'This is not all: the same command again goes on from here.';

  test('twice at once, as npm has it, ends with what is being stored, and says what it has done', async () => {
    const { ended, interrupt } = await startImport(manyRows(MORE_THAN_A_BATCH));
    interrupt();
    await setTimeout(5);
    interrupt();
    const left = await ended;
    expect(left).toEqual({ code: 130, stdout: told({ created: await countOf('product') }), stderr: `${UNFINISHED}\n` });
  });

  test('tells of what goes wrong in the batch that is being stored then', async () => {
    // The signal comes while it takes its time.
    await shop.sql(`
      create function late() returns trigger language plpgsql as $$
      begin
        if exists (select from product where name = 'Row 5001') then
          perform pg_sleep(2);
          raise exception 'the disk is full';
        end if;
        return null;
      end $$`);
    await shop.sql('create trigger late after insert on product for each statement execute function late()');
    try {
      const { stdin, ended, interrupt } = startCommand(['products', 'import', '-', '--format', 'csv'], workerDatabase());
      stdin.write(`${HEADER}\n${manyRows(2 * MORE_THAN_A_BATCH).join('')}`);
      await until(async () => (await countOf('product')) >= 5_000, 'the batches before it');
      await setTimeout(1_000);
      interrupt();
      const { code, stderr } = await ended;
      expect([code, stderr]).toEqual([1, expect.stringContaining('the disk is full')]);
    } finally {
      await shop.sql('drop trigger late on product');
      await shop.sql('drop function late()');
    }
  });
});

describe('products export', () => {
  test('writes all products by primary key, and what it writes imports as the same catalogue', async () => {
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
      expect(await fed(text, '--format', format)).toEqual({ code: 0, stdout: told({ created: 3 }), stderr: '' });
      expect((await stored()).map(([name, barcode, price]) => [name, barcode, Number(price)])).toEqual(
        before.map(([name, barcode, price]) => [name, barcode, Number(price)]),
      );
      expect(await fed(text, '--format', format)).toMatchObject({ stdout: told({ left: 3 }) });
    }
  });

  test('writes NDJSON with the times of the GraphQL door', async () => {
    const { createdAt } = await shop.makeProduct({ name: 'A "lamp"', barcode: '4006381333931', price: '12.50' });
    const { stdout } = await products('export', '-', '--format', 'ndjson');
    expect(JSON.parse(stdout)).toEqual({
      pk: 1,
      name: 'A "lamp"',
      barcode: '4006381333931',
      price: 12.5,
      createdAt: createdAt.toISOString(),
      updatedAt: createdAt.toISOString(),
    });
  });

  test('has every product once, however many batches there are', async () => {
    const names = manyRows(6_001);
    await fed(`${HEADER}\n${names.join('')}`, '--format', 'csv');
    await shop.sql('delete from product where pk % 7 = 0');
    const { stdout } = await products('export');
    const pks = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((row) => Number(row.split(',')[0]));
    expect(pks).toEqual((await shop.sql('select pk from product order by pk')).map(({ pk }) => pk));
  });

  test('--for-spreadsheets puts an apostrophe before what would be a formula', async () => {
    for (const name of ['=1+1', '+1', '-1', '@SUM(1)', 'a=1', 'a;=1;b', ';-1;"@1', 'a; b']) await shop.makeProduct({ name });
    const { stdout } = await products('export', '--for-spreadsheets');
    const found = [...stdout.matchAll(/^\d+,"(.*?)",/gm)].map(([, name]) => name);
    expect(found.slice(0, 5)).toEqual(["'=1+1", "'+1", "'-1", "'@SUM(1)", 'a=1']);
    // Where commas are for decimals, a spreadsheet takes a semicolon for the end of a cell, in quotation marks or not.
    expect(found.slice(5)).toEqual(["a;'=1;b", `;'-1;""'@1`, 'a; b']);
  });

  test('of an empty catalogue is the header, which is imported as no rows', async () => {
    const { stdout } = await products('export');
    expect(stdout).toBe(`${EXPORTED}\n`);
    expect(await fed(stdout, '--format', 'csv')).toEqual({ code: 0, stdout: told({}), stderr: '' });
  });

  test('writes a file in the format of its name, and packs it where the name or --gzip says so', async () => {
    await shop.makeProduct({ name: 'Ink' });
    await withFiles({}, async (folder) => {
      const [plain, packed, asked] = ['a.ndjson', 'b.csv.gz', 'c.csv'].map((name) => join(folder, name)) as [string, string, string];
      expect(await products('export', plain)).toEqual({ code: 0, stdout: `Products in ${plain}: 1.\n`, stderr: '' });
      await products('export', packed);
      await products('export', asked, '--gzip');
      expect(JSON.parse(await readFile(plain, 'utf8'))).toMatchObject({ name: 'Ink' });
      for (const path of [packed, asked]) expect(gunzipSync(await readFile(path)).toString()).toMatch(/^pk,name,.*\n1,"Ink",/);
      expect(await readdir(folder)).toEqual(['a.ndjson', 'b.csv.gz', 'c.csv']);
    });
  });

  test('takes the place of a file only when it is whole', async () => {
    await withFiles({ 'a.csv': 'before' }, async (folder) => {
      await shop.sql('alter table product rename to product_away');
      const refused = await products('export', join(folder, 'a.csv')).finally(() => shop.sql('alter table product_away rename to product'));
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(await readdir(folder)).toEqual(['a.csv']);
      expect(await readFile(join(folder, 'a.csv'), 'utf8')).toBe('before');
    });
  });

  test('two at once to one file leave one that is whole, and nothing beside it', async () => {
    await fed(`${HEADER}\n${manyRows(6_000).join('')}`, '--format', 'csv');
    await withFiles({}, async (folder) => {
      const path = join(folder, 'a.csv');
      const found = await Promise.all(Array.from({ length: 4 }, () => products('export', path)));
      expect(found).toEqual(found.map(() => ({ code: 0, stdout: `Products in ${path}: 6000.\n`, stderr: '' })));
      expect(await readFile(path, 'utf8')).toBe((await products('export')).stdout);
      expect(await readdir(folder)).toEqual(['a.csv']);
    });
  });

  test('that is interrupted leaves nothing beside the file', async () => {
    await withFiles({ 'a.csv': 'before' }, async (folder) => {
      await shop.makeProduct();
      // The database is asked for the products, and keeps the export waiting.
      await shop.sql('alter table product rename to product_away');
      await shop.sql('create view product as select product_away.* from product_away, pg_sleep(2)');
      try {
        const { ended, interrupt } = startCommand(['products', 'export', join(folder, 'a.csv')], workerDatabase());
        await until(async () => (await readdir(folder)).length > 1, 'the part');
        interrupt();
        expect(await ended).toEqual({ code: 130, stdout: '', stderr: '' });
      } finally {
        await shop.sql('drop view product');
        await shop.sql('alter table product_away rename to product');
      }
      expect(await readdir(folder)).toEqual(['a.csv']);
      expect(await readFile(join(folder, 'a.csv'), 'utf8')).toBe('before');
    });
  });

  test('writes to a device as it is', async () => {
    expect(await products('export', '/dev/null', '--format', 'csv')).toMatchObject({ code: 0 });
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });

  test('refuses a file that cannot be written', async () => {
    await withFiles({}, async (folder) => {
      const path = join(folder, 'none', 'a.csv');
      expect(await products('export', path)).toEqual({ code: 1, stdout: '', stderr: `${path} cannot be written (ENOENT)\n` });
    });
  });

  test.each([[], ['--gzip']])('tells of a disk that is full by the name of the file %s', async (...args) => {
    await shop.makeProduct();
    expect(await products('export', '/dev/full', '--format', 'csv', ...args)).toEqual({
      code: 1,
      stdout: '',
      stderr: '/dev/full cannot be written (ENOSPC)\n',
    });
  });

  test.each([
    ['export', 'products.txt'],
    ['export', 'a.csv', 'b.csv'],
    ['export', '--format', 'xml'],
  ])('wrong usage ends with 64: products %s %s %s', async (...args) => {
    expect(await products(...args)).toMatchObject({ code: 64, stdout: '' });
  });
});

function damaged(): Buffer {
  const packed = gzipSync(lines(HEADER, INK));
  packed[12] = 0xff;
  return packed;
}

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}

async function stored(): Promise<unknown[][]> {
  return (await shop.sql('select name, barcode, price::text from product order by pk')).map((row) => Object.values(row));
}
