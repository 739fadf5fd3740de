import { createReadStream, openSync, type ReadStream } from 'node:fs';
import { link, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from '../support/jest.ts';
import { command, startCommand, type RunningCommand } from '../support/command.ts';
import { HEADER, INK, lines, manyRows, importSummary, withFiles } from '../support/import-files.ts';
import type { ProcessResult } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();

const LAMP = '"Lamp, ""tall""",4006381333931,0.10';
const EXPORTED = 'pk,name,barcode,price,createdAt,updatedAt';

const products = (...args: string[]): Promise<ProcessResult> =>
  command(['products', ...args], workerDatabase());
const importInput = (input: string | Buffer, ...args: string[]): Promise<ProcessResult> =>
  command(['products', 'import', '-', ...args], workerDatabase(), input);
/** Starts an import with more input to come, and waits until a batch is stored. */
const startImport = async (rows: readonly string[], ...args: string[]): Promise<RunningCommand> => {
  const running = startCommand(
    ['products', 'import', '-', '--format', 'csv', ...args],
    workerDatabase(),
  );
  running.stdin.write(`${HEADER}\n${rows.join('')}`);
  await until(async () => (await countOf('product_import_batch')) > 0, 'the first batch');
  return running;
};

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

  test.each(['new.ndjson', 'new.jsonl', 'NEW.NDJSON', 'new.ndjson.gz'])(
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

  test('reads standard input, compressed or not', async () => {
    expect(await importInput(lines(HEADER, INK), '--format', 'csv')).toEqual({
      code: 0,
      stdout: importSummary({ created: 1 }),
      stderr: '',
    });
    expect(await importInput(gzipSync(lines(HEADER, INK)), '--format', 'csv')).toEqual({
      code: 0,
      stdout: importSummary({ unchanged: 1 }),
      stderr: '',
    });
  });

  test('prints rejected rows to standard error, by line and column, imports the rest, and ends with 1', async () => {
    expect(
      await importInput(
        lines(HEADER, INK, 'A,5901234123457,1', 'B,4006381333931,1.005', '"'),
        '--format',
        'csv',
      ),
    ).toEqual({
      code: 1,
      stdout: importSummary({ created: 1, refused: 3 }),
      stderr: lines(
        'Line 3: barcode: Duplicate barcode; first used on line 2',
        'Line 4: price: A price has at most 2 decimal places',
        'Line 5: Unclosed or misplaced quotation mark',
      ),
    });
  });

  test('prints only the first twenty of many', async () => {
    const { stderr } = await importInput(
      lines(HEADER, ...Array<string>(30).fill('A,1')),
      '--format',
      'csv',
    );
    expect(stderr.split('\n').slice(18)).toEqual([
      'Line 20: The row has 2 cells, but the header has 3',
      'Line 21: The row has 2 cells, but the header has 3',
      'And 10 more. Use --errors FILE to get them all.',
      '',
    ]);
  });

  test('writes all of them to the file of --errors', async () => {
    await withFiles(
      { 'new.csv': lines(HEADER, ...Array<string>(30).fill('A,5901234123457,x')) },
      async (folder) => {
        const errors = join(folder, 'errors.ndjson');
        expect(await products('import', join(folder, 'new.csv'), '--errors', errors)).toEqual({
          code: 1,
          stdout: importSummary({ refused: 30 }),
          stderr: '',
        });
        const found = (await readFile(errors, 'utf8')).trim().split('\n');
        expect(found).toHaveLength(30);
        expect(JSON.parse(found[29] ?? '')).toEqual({
          line: 31,
          column: 'price',
          type: 'decimal_parsing',
          message: expect.any(String),
        });
      },
    );
  });

  test('a line break in a cell begins no row (RFC 4180, 2.6), so none changes another product', async () => {
    await shop.makeProduct({ name: 'Lamp', barcode: '4006381333931', price: '12.50' });
    const input = lines(
      HEADER,
      '"Notes',
      'Tea,5901234123457,0.01',
      'Lamp,4006381333931,0.01',
      'end",0012345678905,1',
      INK,
    );
    expect(await importInput(input, '--format', 'csv')).toEqual({
      code: 1,
      stdout: importSummary({ created: 1, refused: 1 }),
      stderr: 'Line 2: name: String should have no control characters\n',
    });
    expect(await stored()).toEqual([
      ['Lamp', '4006381333931', '12.50'],
      ['Ink', '5901234123457', '12.50'],
    ]);
  });

  test('stops at a quotation mark that hides where the record ends, and imports the rows before', async () => {
    const input = lines(HEADER, INK, '"A "b" c",0012345678905,1', LAMP);
    expect(await importInput(input, '--format', 'csv')).toEqual({
      code: 1,
      stdout: importSummary({ created: 1, refused: 1 }),
      stderr: 'Line 3: Unclosed or misplaced quotation mark; the rest of the file was not read\n',
    });
  });

  test.each<[string, () => Iterable<string>, string]>([
    [
      'blank lines',
      function* () {
        yield lines(HEADER, INK);
        for (let count = 0; count < 64; count++) yield '\n'.repeat(1024 * 1024);
      },
      'Too many blank lines',
    ],
    [
      'a line of 64 MiB',
      function* () {
        yield lines(HEADER, INK);
        for (let count = 0; count < 64; count++) yield ' '.repeat(1024 * 1024);
      },
      'Line 3: The line has more than 65536 bytes',
    ],
    [
      'an unclosed quotation mark',
      function* () {
        yield `${lines(HEADER, INK)}"`;
        for (let count = 0; count < 64; count++) yield INK.repeat(1024);
        yield `${INK}\n`.repeat(64 * 1024);
      },
      'Line 3: The line has more than 65536 bytes',
    ],
    [
      'an unclosed quotation mark before short lines',
      function* () {
        yield `${lines(HEADER, INK)}"`;
        for (let count = 0; count < 64; count++) yield `${INK}\n`.repeat(1024);
      },
      'Line 3: A record of more than 65536 characters begins here',
    ],
  ])('reads no further into gzip data of %s', async (_what, parts, message) => {
    const whole = gzipSync([...parts()].join(''));
    // Without its end: only an import that reads up to it reports that it is damaged.
    const { code, stdout, stderr } = await importInput(whole.subarray(0, -6), '--format', 'csv');
    expect([code, stdout]).toEqual([1, importSummary({ created: 1, refused: 1 })]);
    expect(stderr).toMatch(/^Line \d+: .*; the rest of the file was not read\n$/);
    expect(stderr).toContain(message);
  });

  test('imports equal data from files of scripts and spreadsheets, as CSV and as NDJSON', async () => {
    const files = {
      csv: '\ufeff\r\n,,\r\nName, BARCODE ,Price,\r\n Ink , 5901234123457, 12.500 ,\r\n,,,\r\n',
      ndjson: '\ufeff\n{}\n{"Name":" Ink ","BARCODE":"5901234123457","Price":12.500}\n',
    };
    for (const [format, text] of Object.entries(files)) {
      await shop.empty();
      expect(await importInput(text, '--format', format)).toEqual({
        code: 0,
        stdout: importSummary({ created: 1 }),
        stderr: '',
      });
      expect(await stored()).toEqual([['Ink', '5901234123457', '12.50']]);
    }
  });

  test('--dry-run prints the summary of the import, and writes nothing', async () => {
    expect(await importInput(lines(HEADER, INK, LAMP), '--format', 'csv', '--dry-run')).toEqual({
      code: 0,
      stdout: 'To create: 2. To change: 0. To leave unchanged: 0. Refused: 0.\n',
      stderr: '',
    });
    expect(await stored()).toEqual([]);
  });

  test('--stop-on-error stops at the first rejected row', async () => {
    expect(
      await importInput(lines(HEADER, INK, 'A', LAMP), '--format', 'csv', '--stop-on-error'),
    ).toMatchObject({
      code: 1,
      stdout: importSummary({ created: 1, refused: 1 }),
    });
  });

  test.each<[string, Buffer | string, string]>([
    ['that is empty', '', 'The file is empty\n'],
    [
      'whose gzip is truncated',
      gzipSync(lines(HEADER, INK)).subarray(0, -6),
      'Standard input is truncated: its gzip data is incomplete\n',
    ],
    ['whose gzip is damaged', damaged(), 'Standard input is damaged: its gzip data is invalid\n'],
    ['without a header', INK, 'lacks "name", "barcode", "price"'],
  ])('rejects a file %s', async (_what, input, message) => {
    expect(await importInput(input, '--format', 'csv')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(message),
    });
  });

  test('a truncated gzip file is imported up to its end, without a hint that importing it again resumes', async () => {
    const whole = gzipSync(`${HEADER}\n${manyRows(12_000).join('')}`);
    const { code, stdout, stderr } = await importInput(whole.subarray(0, -6), '--format', 'csv');
    const done = await countOf('product');
    expect(done).toBeGreaterThan(0);
    expect([code, stdout]).toEqual([1, importSummary({ created: done })]);
    expect(stderr).toBe('Standard input is truncated: its gzip data is incomplete\n');
    expect(await importInput(whole, '--format', 'csv')).toMatchObject({
      code: 0,
      stdout: importSummary({ created: 12_000 - done, skipped: done }),
    });
  });

  test('rejects an unreadable file and an unwritable error file before anything is imported', async () => {
    await withFiles({ 'new.csv': lines(HEADER, INK) }, async (folder) => {
      expect(await products('import', join(folder, 'none.csv'))).toEqual({
        code: 1,
        stdout: '',
        stderr: `${folder}/none.csv cannot be read (ENOENT)\n`,
      });
      expect(await products('import', folder, '--format', 'csv')).toMatchObject({
        code: 1,
        stderr: `${folder} cannot be read (EISDIR)\n`,
      });
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
  ])(
    '--errors with another name of the imported file (%s) is wrong usage, and does not change the file',
    async (_what, makeLink) => {
      const text = lines(HEADER, INK);
      await withFiles({ 'new.csv': text }, async (folder) => {
        const [file, other] = [join(folder, 'new.csv'), join(folder, 'errors.csv')] as const;
        await makeLink(file, other);
        expect(await products('import', file, '--errors', other)).toMatchObject({
          code: 64,
          stdout: '',
        });
        expect(await products('import', other, '--errors', file)).toMatchObject({
          code: 64,
          stdout: '',
        });
        const stdin = createReadStream('', { fd: openSync(file, 'r') }) as ReadStream & {
          fd: number;
        };
        const args = ['products', 'import', '-', '--format', 'csv', '--errors', other];
        expect(await command(args, workerDatabase(), '', { stdin })).toMatchObject({
          code: 64,
          stdout: '',
        });
        stdin.destroy();
        expect(await readFile(file, 'utf8')).toBe(text);
      });
    },
  );
});

describe('an interrupted import', () => {
  const MANY = 12_000;
  const BATCH_AND_MORE = 6_000;

  test('with --from-start resumes when run without it, and says so', async () => {
    const rows = manyRows(MANY);
    const { ended, interrupt } = await startImport(rows.slice(0, BATCH_AND_MORE), '--from-start');
    interrupt();
    expect(await ended).toMatchObject({
      code: 130,
      stderr: 'The import is incomplete. Run the same command without --from-start to resume it.\n',
    });
    const done = await countOf('product');
    const { stdout } = await importInput(`${HEADER}\n${rows.join('')}`, '--format', 'csv');
    expect(stdout).toBe(importSummary({ created: MANY - done, skipped: done }));
  });

  test('by SIGINT resumes when it is run again, and stores each product once', async () => {
    const rows = manyRows(MANY);
    const { ended, interrupt } = await startImport(rows.slice(0, BATCH_AND_MORE));
    interrupt();
    const summary = await ended;
    const done = await countOf('product');
    expect(summary).toEqual({
      code: 130,
      stdout: importSummary({ created: done }),
      stderr: 'The import is incomplete. Run the same command again to resume it.\n',
    });
    expect(done).toBeLessThan(MANY);
    const { stdout: second } = await importInput(`${HEADER}\n${rows.join('')}`, '--format', 'csv');
    expect(second).toBe(importSummary({ created: MANY - done, skipped: done }));
    expect(await countOf('product')).toBe(MANY);
  });
});

describe('an import that receives a signal', () => {
  const MORE_THAN_A_BATCH = 6_000;
  const UNFINISHED = 'The import is incomplete. Run the same command again to resume it.';

  test('twice at once, as from npm, stores the current batch, and prints the summary', async () => {
    const { ended, interrupt } = await startImport(manyRows(MORE_THAN_A_BATCH));
    interrupt();
    await setTimeout(5);
    interrupt();
    const summary = await ended;
    expect(summary).toEqual({
      code: 130,
      stdout: importSummary({ created: await countOf('product') }),
      stderr: `${UNFINISHED}\n`,
    });
  });

  test('reports an error in the batch being stored', async () => {
    // The signal arrives while the batch is being stored.
    await shop.sql(`
      create function late() returns trigger language plpgsql as $$
      begin
        if exists (select from product where name = 'Row 5001') then
          perform pg_sleep(2);
          raise exception 'the disk is full';
        end if;
        return null;
      end $$`);
    await shop.sql(
      'create trigger late after insert on product for each statement execute function late()',
    );
    try {
      const { stdin, ended, interrupt } = startCommand(
        ['products', 'import', '-', '--format', 'csv'],
        workerDatabase(),
      );
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

  test('writes NDJSON with the times as in the GraphQL API', async () => {
    const { createdAt } = await shop.makeProduct({
      name: 'A "lamp"',
      barcode: '4006381333931',
      price: '12.50',
    });
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

  test('--for-spreadsheets adds an apostrophe before formulas', async () => {
    const names = [
      '=1+1',
      '+1',
      '-1',
      '@SUM(1)',
      '＝1',
      '＋1',
      '－1',
      '＠SUM(1)',
      '﹢1',
      "'a",
      'a=1',
    ];
    for (const name of [...names, 'a;=1;b', ';-1;"@1', '; ＝1', 'a; b'])
      await shop.makeProduct({ name });
    const { stdout } = await products('export', '--for-spreadsheets');
    const found = [...stdout.matchAll(/^\d+,"(.*?)",/gm)].map(([, name]) => name);
    expect(found.slice(0, names.length)).toEqual([
      ...names.slice(0, -1).map((name) => `'${name}`),
      'a=1',
    ]);
    // With a decimal comma, spreadsheets also split cells at semicolons, quoted or not.
    expect(found.slice(names.length)).toEqual(["a;'=1;b", `;'-1;""'@1`, "; '＝1", 'a; b']);
  });

  test('--for-spreadsheets writes a byte order mark, and barcodes as text, which keeps their zeros', async () => {
    await shop.makeProduct({ name: 'Tür', barcode: '0036000291452', price: '0.10' });
    const { stdout } = await products('export', '--for-spreadsheets');
    expect(stdout).toMatch(
      /^\ufeffpk,'name,'barcode,price,createdAt,updatedAt\n1,"Tür",'0036000291452,0.10,.*\n$/,
    );
    expect((await products('export', '--for-spreadsheets', '--format', 'ndjson')).stdout).toMatch(
      /^\{"pk":1,"name":"Tür","barcode":"0036000291452",/,
    );
  });

  test('--for-spreadsheets is imported unchanged, also without the apostrophes that some spreadsheets drop', async () => {
    const parts = ['', "'", "''", '=', '＝', '-', ';', '; "', '"', "a'", '\u2028'];
    const names = parts.flatMap((first) =>
      parts.flatMap((second) => ["='x", `"'`, '@'].map((third) => first + second + third)),
    );
    const input = manyRows(names.length).map((row, index) => {
      const [, barcode = ''] = row.split(',');
      return JSON.stringify({ name: names[index], barcode, price: 1 });
    });
    expect(await importInput(lines(...input), '--format', 'ndjson')).toMatchObject({ code: 0 });
    const { stdout } = await products('export', '--for-spreadsheets');
    const before = await stored();
    for (const text of [stdout, stdout.replaceAll('\n', '\r\n')]) {
      expect(await importInput(text, '--format', 'csv')).toEqual({
        code: 0,
        stdout: importSummary({ unchanged: names.length }),
        stderr: '',
      });
    }
    const dropped = stdout.replace(/(?<=[\ufeff,]"?)'/g, '').replace(/^.*;.*\n/gm, '');
    expect(await importInput(dropped, '--format', 'csv')).toMatchObject({
      stdout: expect.stringMatching(/Created: 0. Changed: 0. Unchanged: \d{3}. Refused: 0/),
    });
    await shop.empty();
    await importInput(stdout, '--format', 'csv');
    expect(await stored()).toEqual(before);
  });

  test('of an empty catalogue is only the header, which imports as no rows', async () => {
    const { stdout } = await products('export');
    expect(stdout).toBe(`${EXPORTED}\n`);
    expect(await importInput(stdout, '--format', 'csv')).toEqual({
      code: 0,
      stdout: importSummary({}),
      stderr: '',
    });
  });

  test('writes a file in the format of its name, compressed by its name or --gzip', async () => {
    await shop.makeProduct({ name: 'Ink' });
    await withFiles({}, async (folder) => {
      const [plain, compressed, byOption] = ['a.ndjson', 'b.csv.gz', 'c.csv'].map((name) =>
        join(folder, name),
      ) as [string, string, string];
      expect(await products('export', plain)).toEqual({
        code: 0,
        stdout: `Products in ${plain}: 1.\n`,
        stderr: '',
      });
      await products('export', compressed);
      await products('export', byOption, '--gzip');
      expect(JSON.parse(await readFile(plain, 'utf8'))).toMatchObject({ name: 'Ink' });
      for (const path of [compressed, byOption])
        expect(gunzipSync(await readFile(path)).toString()).toMatch(/^pk,name,.*\n1,"Ink",/);
      expect(await readdir(folder)).toEqual(['a.ndjson', 'b.csv.gz', 'c.csv']);
    });
  });

  test('replaces a file only when it is complete', async () => {
    await withFiles({ 'a.csv': 'before' }, async (folder) => {
      await shop.sql('alter table product rename to product_away');
      const rejected = await products('export', join(folder, 'a.csv')).finally(() =>
        shop.sql('alter table product_away rename to product'),
      );
      expect(rejected).toMatchObject({ code: 1, stdout: '' });
      expect(await readdir(folder)).toEqual(['a.csv']);
      expect(await readFile(join(folder, 'a.csv'), 'utf8')).toBe('before');
    });
  });

  test('two concurrent exports to one file leave one complete file, and no other', async () => {
    await importInput(`${HEADER}\n${manyRows(6_000).join('')}`, '--format', 'csv');
    await withFiles({}, async (folder) => {
      const path = join(folder, 'a.csv');
      const found = await Promise.all(Array.from({ length: 4 }, () => products('export', path)));
      expect(found).toEqual(
        found.map(() => ({ code: 0, stdout: `Products in ${path}: 6000.\n`, stderr: '' })),
      );
      expect(await readFile(path, 'utf8')).toBe((await products('export')).stdout);
      expect(await readdir(folder)).toEqual(['a.csv']);
    });
  });

  test('that is interrupted leaves no other file', async () => {
    await withFiles({ 'a.csv': 'before' }, async (folder) => {
      await shop.makeProduct();
      // The export waits for the database.
      await shop.sql('alter table product rename to product_away');
      await shop.sql('create view product as select product_away.* from product_away, pg_sleep(2)');
      try {
        const { ended, interrupt } = startCommand(
          ['products', 'export', join(folder, 'a.csv')],
          workerDatabase(),
        );
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

  test('writes directly to a device', async () => {
    expect(await products('export', '/dev/null', '--format', 'csv')).toMatchObject({ code: 0 });
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });

  test('rejects a file that cannot be written', async () => {
    await withFiles({}, async (folder) => {
      const path = join(folder, 'none', 'a.csv');
      expect(await products('export', path)).toEqual({
        code: 1,
        stdout: '',
        stderr: `${path} cannot be written (ENOENT)\n`,
      });
    });
  });

  test.each([[], ['--gzip']])(
    'reports a full disk with the name of the file %s',
    async (...args) => {
      await shop.makeProduct();
      expect(await products('export', '/dev/full', '--format', 'csv', ...args)).toEqual({
        code: 1,
        stdout: '',
        stderr: '/dev/full cannot be written (ENOSPC)\n',
      });
    },
  );

  test.each([
    ['export', 'products.txt'],
    ['export', 'a.csv', 'b.csv'],
    ['export', '--format', 'xml'],
  ])('wrong usage ends with 64: products %s %s %s', async (...args) => {
    expect(await products(...args)).toMatchObject({ code: 64, stdout: '' });
  });
});

function damaged(): Buffer {
  const compressed = gzipSync(lines(HEADER, INK));
  compressed[12] = 0xff;
  return compressed;
}

async function countOf(table: string): Promise<number> {
  return Number((await shop.sql(`select count(*)::int as count from ${table}`))[0]?.['count']);
}

async function stored(): Promise<unknown[][]> {
  return (await shop.sql('select name, barcode, price::text from product order by pk')).map((row) =>
    Object.values(row),
  );
}
