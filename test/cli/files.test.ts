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

  test.each([1, 1_000, 64 * KiB, 300 * KiB])(
    'only a line that is too long is rejected, in chunks of %i bytes',
    async (size) => {
      const bytes = Buffer.from(`a\n${'é'.repeat(100 * KiB)}\nb\n`);
      expect(await linesIn(chunksOf(bytes, [size]))).toEqual([
        { number: 1, text: 'a' },
        rejection(2, 'line_too_long'),
        { number: 3, text: 'b' },
      ]);
    },
  );

  test('an endless line is not held in memory', async () => {
    const chunk = Buffer.alloc(1024 * KiB, 'x');
    const endless = async function* () {
      for (let count = 0; count < 1_000; count++) yield chunk;
    };
    const before = process.memoryUsage().rss;
    expect(await linesIn(endless())).toEqual([rejection(1, 'line_too_long')]);
    expect((process.memoryUsage().rss - before) / KiB / KiB).toBeLessThan(200);
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
    ['not closed', '"A,1,2'],
    ['in the middle of a cell', 'A"b,1,2'],
    ['followed by more', '"A"b,1,2'],
  ])('only a row with a quotation mark that is %s is rejected', async (_what, row) => {
    expect(await csv(`${HEADER}B,1,2\n${row}\nC,1,2\n"D",1,2\n`)).toEqual([
      { line: 2, values: expect.anything() },
      { line: 3, error: expect.objectContaining({ type: 'quotes' }) },
      { line: 4, values: expect.anything() },
      { line: 5, values: expect.objectContaining({ name: 'D' }) },
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
    ['another separator', 'name;barcode;price\n', 'has an unknown column "name;barcode;price"'],
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
  return { number, error: expect.objectContaining({ field: '', type }) };
}
