import { describe, expect, test } from '../support/jest.ts';
import fc from 'fast-check';
import { csvRows } from '../../src/cli/files/csv.ts';
import { readLines, type Line } from '../../src/cli/files/line-reader.ts';
import { ndjsonRows } from '../../src/cli/files/ndjson.ts';
import { InexactNumber } from '../../src/core/inexact-number.ts';
import type { FileRow } from '../../src/features/products/files/file-columns.ts';

const HEADER = 'name,barcode,price\n';
const KiB = 1024;

describe('the lines of a file', () => {
  test('are the same for any chunks', async () => {
    const text = fc
      .array(fc.constantFrom('a', 'é', '🧀', '\n', '\r\n', '\ufeff', '"'), { maxLength: 40 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (whole, sizes) => {
          const expected = whole.split('\n');
          if (expected.at(-1) === '') expected.pop();
          if (expected[0] !== undefined) expected[0] = expected[0].replace(/^\ufeff/, '');
          const found = await linesIn(chunksOf(Buffer.from(whole), sizes));
          expect(found).toEqual(
            expected.map((line, index) => ({ number: index + 1, text: line.replace(/\r$/, '') })),
          );
        },
      ),
    );
  });

  test('only a line that is not UTF-8 is rejected, for any chunks', async () => {
    const bytes = Buffer.concat([
      Buffer.from('é\n'),
      Buffer.from([0x63, 0xe9, 0x0a]),
      Buffer.from('🧀\n'),
    ]);
    for (const size of [1, 2, 3, 100]) {
      expect(await linesIn(chunksOf(bytes, [size]))).toEqual([
        { number: 1, text: 'é' },
        rejection(2, 'not_utf8'),
        { number: 3, text: '🧀' },
      ]);
    }
  });

  test.each([100, 1_000, 64 * KiB, 300 * KiB])(
    'end at a line that is too long, in chunks of %i bytes',
    async (size) => {
      const bytes = Buffer.from(`a\n${'é'.repeat(100 * KiB)}\nb\n`);
      expect(await linesIn(chunksOf(bytes, [size]))).toEqual([
        { number: 1, text: 'a' },
        rejection(2, 'line_too_long'),
      ]);
    },
  );

  test('an endless line is read only up to its maximum', async () => {
    const { chunks, count } = endless('x'.repeat(KiB));
    expect(await linesIn(chunks)).toEqual([rejection(1, 'line_too_long')]);
    expect(count()).toBe(64);
  });
});

describe('the rows of a CSV file', () => {
  test('have only the imported columns of the header, in any order', async () => {
    const text =
      'price,pk,barcode,createdAt,name,updatedAt\n1.50,7,4006381333931,x,"A ""b"", c",y\n';
    expect(await csv(text)).toEqual([
      { line: 2, values: { name: 'A "b", c', barcode: '4006381333931', price: '1.50' } },
    ]);
  });

  test.each([
    ['a byte order mark', `\ufeff${HEADER}A,1,2\n`],
    ['CRLF', `${HEADER}A,1,2\n`.replaceAll('\n', '\r\n')],
    ['blanks around cells', `name, barcode , price\n A , 1\t,\u00a02 `],
    ['blanks around quotation marks', `name, "barcode", "price"\n"A" , " 1 ", "2"`],
    ['names in any case', 'Name,BARCODE,Price\nA,1,2'],
    ['empty columns at the end', `name,barcode,price,,\nA,1,2,,`],
    ['empty columns only in the header', `name,barcode,price,, \nA,1,2`],
    ['empty columns only in rows', `${HEADER}A,1,2,, ,`],
    ['an empty column before', `,name,barcode,price\n ,A,1,2`],
    ['no line break at the end', `${HEADER}A,1,2`],
    ['spaces in the header', `name, barcode , price\nA,1,2`],
    ['quotation marks in the header', `"name","barcode","price"\nA,1,2`],
  ])('are read with %s', async (_what, text) => {
    expect(await csv(text)).toEqual([{ line: 2, values: { name: 'A', barcode: '1', price: '2' } }]);
  });

  test('keep their line number after empty lines', async () => {
    expect((await csv(`\n${HEADER}\n\nA,1,2\n\nB,1,2\n\n`)).map(({ line }) => line)).toEqual([
      5, 7,
    ]);
  });

  test.each([
    ['an empty line', '\n'],
    ['a line of blanks', ' \t\n'],
    ['a line of commas', ',,\n'],
    ['blank cells', ' , "" ,\u00a0\n'],
    ['blank cells in quotation marks', '"","",""\n'],
  ])('are read after %s, before and after the header', async (_what, blank) => {
    expect(await csv(`\ufeff${blank}${HEADER}${blank}A,1,2\n${blank}`)).toEqual([
      { line: 4, values: { name: 'A', barcode: '1', price: '2' } },
    ]);
  });

  test.each([
    ['LF', '"a\nLamp,4006381333931,1\nb",1,2\n'],
    ['CRLF', '"a\r\nLamp,4006381333931,1\r\nb",1,2\r\n'],
    ['empty lines', '"a\n\n\nb",1,2\n'],
    ['doubled quotation marks', '"a ""\n""\n b",1,2\n'],
    ['commas and quotation marks', '"a,""b"",\n"",1,2\n","1","2"\n'],
    ['several cells', '"a\nb","\n1","2\n"\n'],
    ['blanks around the cell', ' "a\nb" ,1,2\n'],
    ['a quotation mark as the last character', '"a\n""",1,2\n'],
  ])('a line break in a cell begins no record (RFC 4180, 2.6): %s', async (_what, record) => {
    const rows = await csv(`${HEADER}A,1,2\n${record}C,1,2\n`);
    const lines = record.split('\n').length - 1;
    expect(rows.map(({ line }) => line)).toEqual([2, 3, 3 + lines]);
    expect(rows).toMatchObject([
      { values: { name: 'A' } },
      { values: { name: expect.stringContaining('\n'), barcode: '1', price: '2' } },
      { values: { name: 'C', barcode: '1', price: '2' } },
    ]);
  });

  test('are those that were written, with any cells and chunks (RFC 4180)', async () => {
    const cell = fc
      .array(fc.constantFrom('a', '"', '""', ',', ' ', '\n', ';', "'", 'é'), { maxLength: 8 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ name: cell, barcode: cell, price: cell }), { maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (written, sizes) => {
          const text = written
            .map(({ name, barcode, price }) => [name, barcode, price].map(quoted).join())
            .join('\n');
          const found = await all(csvRows(readLines(chunksOf(Buffer.from(HEADER + text), sizes))));
          expect(found.map((row) => 'values' in row && row.values)).toEqual(
            written
              .map((row) =>
                Object.fromEntries(
                  Object.entries(row).map(([name, value]) => [name, value.trim()]),
                ),
              )
              .filter((row) => Object.values(row).some((value) => value !== '')),
          );
        },
      ),
    );
  });

  test('only a row with a quotation mark in the middle of a cell is rejected', async () => {
    expect(await csv(`${HEADER}B,1,2\nA"b,1,2\nC,1,2\n"D",1,2\n`)).toEqual([
      { line: 2, values: expect.anything() },
      { line: 3, error: expect.objectContaining({ type: 'quotes' }) },
      { line: 4, values: expect.anything() },
      { line: 5, values: expect.objectContaining({ name: 'D' }) },
    ]);
  });

  test.each([
    ['not closed', '"A,1,2'],
    ['followed by more', '"A"b,1,2'],
    ['followed by another', '"A" "b",1,2'],
    ['not doubled', '"A "b" c",1,2'],
    ['not doubled, and not UTF-8', '"A "\xe9" c",1,2'],
  ])(
    'end at a quotation mark that is %s, because the next line may be part of the cell',
    async (_what, row) => {
      const bytes = Buffer.from(`${HEADER}B,1,2\n${row}\nC,1,2\n"D",1,2\n`, 'latin1');
      expect(await all(csvRows(readLines(chunksOf(bytes, [7]))))).toEqual([
        { line: 2, values: expect.anything() },
        {
          line: 3,
          error: {
            field: '',
            type: 'quotes',
            message: 'Unclosed or misplaced quotation mark; the rest of the file was not read',
          },
        },
      ]);
    },
  );

  test('end at a record that is too long, read only up to its maximum', async () => {
    const { chunks, count } = endless('Lamp,4006381333931,1\n'.repeat(100), `${HEADER}"`);
    expect(await all(csvRows(readLines(chunks)))).toEqual([
      { line: 2, error: expect.objectContaining({ type: 'record_too_long' }) },
    ]);
    expect(count()).toBeLessThan(40);
  });

  test('a line that is not UTF-8 in a cell with line breaks rejects its record only', async () => {
    const bytes = Buffer.from(`${HEADER}"a\n\xe9""\nb",1,2\nC,1,2\n`, 'latin1');
    expect(await all(csvRows(readLines(chunksOf(bytes, [5]))))).toEqual([
      { line: 2, error: expect.objectContaining({ type: 'not_utf8' }) },
      { line: 5, values: expect.objectContaining({ name: 'C' }) },
    ]);
  });

  test('of a file for spreadsheets lack the apostrophes that protect its columns', async () => {
    const names = ["'=1", "''=1", "'s", 'a', "a;'=1", "'＝1", "''''"];
    const text = names.map((name) => `${name},'1,'2\n`).join('');
    const read = async (header: string) =>
      (await csv(header + text)).map((row) => 'values' in row && row.values);
    expect(await read(HEADER)).toEqual(names.map((name) => ({ name, barcode: "'1", price: "'2" })));
    expect(await read("'name,'barcode,price\n")).toEqual(
      ['=1', "'=1", "'s", 'a', 'a;=1', '＝1', "'''"].map((name) => ({
        name,
        barcode: '1',
        price: "'2",
      })),
    );
  });

  test.each([
    ['A;1;2', '1 cells, but the header has 3; separate cells by commas, not by semicolons or tabs'],
    ['A,1,12,50', '4 cells, but the header has 3; write a price with a decimal point, not a comma'],
    [
      'A,1,2\rB,1,2',
      '5 cells, but the header has 3; lines must end with LF or CRLF, not with CR only',
    ],
  ])('%j has the wrong number of cells, and its likely cause', async (row, message) => {
    expect(await csv(HEADER + row)).toMatchObject([
      { line: 2, error: { type: 'cells', message: expect.stringContaining(message) } },
    ]);
  });

  test('a cell in a column without a name is rejected', async () => {
    expect(await csv('name,,barcode,price\nA,x,1,2\nA,,1,2\n')).toEqual([
      { line: 2, error: expect.objectContaining({ type: 'cells' }) },
      { line: 3, values: { name: 'A', barcode: '1', price: '2' } },
    ]);
  });

  test.each([
    ['A,1', 2],
    ['A,1,2,3', 4],
  ])('%s has too few or too many cells', async (row, count) => {
    expect(await csv(HEADER + row)).toEqual([
      {
        line: 2,
        error: {
          field: '',
          type: 'cells',
          message: `The row has ${count} cells, but the header has 3`,
        },
      },
    ]);
  });

  test.each([
    ['nothing', '', 'The file is empty'],
    ['empty lines', '\n\r\n', 'The file is empty'],
    [
      'no header',
      'Lamp,4006381333931,1\n',
      'lacks "name", "barcode", "price", and has an unknown column "Lamp", "4006381333931", "1"',
    ],
    ['a column missing', 'name,barcode\n', 'The header on line 1 lacks "price"'],
    ['an unknown column', 'name,barcode,price,colour\n', 'has an unknown column "colour"'],
    ['a column twice', 'name,barcode,price,name\n', 'has twice "name"'],
    ['a column twice in another case', 'name,barcode,price,Name\n', 'has twice "name"'],
    ['another separator', 'name;barcode;price\n', 'has an unknown column "name;barcode;price"'],
    ['semicolons', 'name;barcode;price\n', '; separate cells by commas, not by semicolons or tabs'],
    ['tabs', 'name\tbarcode\tprice\n', '; separate cells by commas, not by semicolons or tabs'],
    [
      'the lines of old Macs',
      'name,barcode,price\rA,1,2\r',
      '; lines must end with LF or CRLF, not with CR only as on old Macs',
    ],
    [
      'many lines of old Macs',
      `name,barcode,price\r${'A,1,2\r'.repeat(20_000)}`,
      'Line 1: The line has more than 65536 bytes; lines must end with LF or CRLF, not with CR only',
    ],
    [
      'terminal control sequences',
      'name,barcode,price,\u001b[2J\n',
      'has an unknown column "?[2J"',
    ],
    [
      'a header that is not closed',
      '"name,barcode,price\n',
      'Line 1: Unclosed or misplaced quotation mark',
    ],
  ])('a file with %s is rejected', async (_what, text, message) => {
    await expect(csv(text)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining(message),
    });
  });

  test('a file in UTF-16 is rejected at its first line', async () => {
    const bytes = Buffer.from(`\ufeff${HEADER}`, 'utf16le');
    await expect(all(csvRows(readLines(chunksOf(bytes, [100]))))).rejects.toMatchObject({
      message: 'Line 1: The line is not UTF-8',
    });
  });
});

describe('the rows of an NDJSON file', () => {
  test('are its objects; a number that a double would change is rejected', async () => {
    const text =
      '{"name":"A","barcode":"1","price":1.5,"pk":7}\r\n\n{"name":"B","price":0.100000000000000005551}';
    expect(await ndjson(text)).toEqual([
      { line: 1, values: { name: 'A', barcode: '1', price: 1.5, pk: 7 } },
      { line: 3, values: { name: 'B', price: new InexactNumber('0.100000000000000005551') } },
    ]);
  });

  test.each(['{', '[]', 'null', '1', '"a"', '{"name":"A"} {}', 'name,barcode,price'])(
    'only %s is rejected',
    async (row) => {
      expect(await ndjson(`{"name":"A"}\n${row}\n{"name":"B"}\n`)).toEqual([
        { line: 1, values: { name: 'A' } },
        {
          line: 2,
          error: { field: '', type: 'json_invalid', message: 'The line is not a JSON object' },
        },
        { line: 3, values: { name: 'B' } },
      ]);
    },
  );

  test('skip those without a value, and their names may have any case', async () => {
    expect(
      await ndjson(
        '\ufeff\n{"name":"","barcode":" ","price":null}\n{}\n{"Name":"A","BARCODE":"1"," price ":2}',
      ),
    ).toEqual([{ line: 4, values: { name: 'A', barcode: '1', price: 2 } }]);
  });

  test('a row with a column twice is rejected', async () => {
    expect(await ndjson('{"name":"A","Name":"B"}')).toMatchObject([
      { line: 1, error: { type: 'repeated_column' } },
    ]);
  });

  test('the error of a line names the line ends of old Macs', async () => {
    expect(await ndjson('{"name":"A"}\r{"name":"B"}\r')).toMatchObject([
      { line: 1, error: { message: expect.stringContaining('not with CR only') } },
    ]);
  });

  test.each(['colour', '__proto__', 'constructor'])(
    'a row with an unknown column %s is rejected',
    async (name) => {
      expect(await ndjson(`\ufeff{"name":"A","${name}":{"price":1}}`)).toMatchObject([
        { line: 1, error: { type: 'unknown_column' } },
      ]);
    },
  );

  test.each(['', '\n\n', '\ufeff', ' \r\n'])(
    'a file without data, %j, is rejected',
    async (text) => {
      await expect(ndjson(text)).rejects.toMatchObject({
        code: 'BAD_USER_INPUT',
        message: 'The file is empty',
      });
    },
  );
});

describe.each([
  ['a CSV file', csvRows, HEADER, ['\n', ',,\n', '"",""\r\n'], 'A,1,2'],
  ['an NDJSON file', ndjsonRows, '{"name":"A"}\n', ['\n', '{}\n'], '{"name":"A"}'],
] as const)('the rows of %s', (_what, rowsIn, start, blanks, row) => {
  test.each([...blanks.map((blank) => [blank, start]), ['\n', '']])(
    'end after millions of blank lines %j after %j',
    async (blank = '', before = '') => {
      const { chunks, count } = endless(blank.repeat((64 * KiB) / blank.length), before);
      expect((await all(rowsIn(readLines(chunks)))).at(-1)).toEqual({
        line: expect.any(Number),
        error: {
          field: '',
          type: 'blank',
          message: 'Too many blank lines; the rest of the file was not read',
        },
      });
      expect(count()).toBeLessThan(200);
    },
  );

  test('begin after the blank rows of a whole sheet', async () => {
    const blank = rowsIn === csvRows ? ',,,,,\r\n' : '\r\n';
    const text = `${start}${blank.repeat(1_048_576)}${row}`;
    const rows = await all(rowsIn(readLines(chunksOf(Buffer.from(text), [64 * KiB]))));
    expect(rows.at(-1)).toEqual({
      line: 1_048_578,
      values: expect.objectContaining({ name: 'A' }),
    });
  });
});

function quoted(cell: string): string {
  return `"${cell.replaceAll('"', '""')}"`;
}

/** Endless chunks of a text, and how many of them were read. */
function endless(
  text: string,
  before = '',
): { chunks: AsyncIterable<Buffer>; count: () => number } {
  let count = 0;
  const chunks = async function* () {
    yield Buffer.from(before);
    for (const chunk = Buffer.from(text); ; count++) yield chunk;
  };
  return { chunks: chunks(), count: () => count };
}

function csv(text: string): Promise<FileRow[]> {
  return all(csvRows(readLines(chunksOf(Buffer.from(text), [7]))));
}

function ndjson(text: string): Promise<FileRow[]> {
  return all(ndjsonRows(readLines(chunksOf(Buffer.from(text), [7]))));
}

function linesIn(bytes: AsyncIterable<Buffer>): Promise<Line[]> {
  return all(readLines(bytes));
}

async function all<T>(parts: AsyncIterable<readonly T[]>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of parts) found.push(...part);
  return found;
}

async function* chunksOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let [start, turn] = [0, 0]; start < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(start, start + size);
    start += size;
  }
}

function rejection(number: number, type: string): unknown {
  return {
    number,
    text: expect.any(String),
    error: expect.objectContaining({ field: '', type }),
  };
}
