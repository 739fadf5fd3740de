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
  test('are the same whatever pieces it comes in', async () => {
    const text = fc.array(fc.constantFrom('a', 'é', '🧀', '\n', '\r\n', '\ufeff', '"'), { maxLength: 40 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (whole, sizes) => {
        const expected = whole.split('\n');
        if (expected.at(-1) === '') expected.pop();
        const found = await linesIn(piecesOf(Buffer.from(whole), sizes));
        expect(found).toEqual(expected.map((line, index) => ({ number: index + 1, text: line.replace(/\r$/, '') })));
      }),
    );
  });

  test('one that is no UTF-8 is refused, and no other, in whatever pieces it comes', async () => {
    const bytes = Buffer.concat([Buffer.from('é\n'), Buffer.from([0x63, 0xe9, 0x0a]), Buffer.from('🧀\n')]);
    for (const size of [1, 2, 3, 100]) {
      expect(await linesIn(piecesOf(bytes, [size]))).toEqual([{ number: 1, text: 'é' }, refusal(2, 'not_utf8'), { number: 3, text: '🧀' }]);
    }
  });

  test.each([1, 1_000, 64 * KiB, 300 * KiB])('one that is too long is refused, and no other, in pieces of %i bytes', async (size) => {
    const bytes = Buffer.from(`a\n${'é'.repeat(100 * KiB)}\nb\n`);
    expect(await linesIn(piecesOf(bytes, [size]))).toEqual([
      { number: 1, text: 'a' },
      refusal(2, 'line_too_long'),
      { number: 3, text: 'b' },
    ]);
  });

  test('one that never ends is not held in memory', async () => {
    const piece = Buffer.alloc(1024 * KiB, 'x');
    const endless = async function* () {
      for (let count = 0; count < 1_000; count++) yield piece;
    };
    const before = process.memoryUsage().rss;
    expect(await linesIn(endless())).toEqual([refusal(1, 'line_too_long')]);
    expect((process.memoryUsage().rss - before) / KiB / KiB).toBeLessThan(200);
  });
});

describe('the rows of a CSV file', () => {
  test('have the columns of the header, in any order, and none of those that are not imported', async () => {
    const text = 'price,pk,barcode,createdAt,name,updatedAt\n1.50,7,4006381333931,x,"A ""b"", c",y\n';
    expect(await csv(text)).toEqual([{ line: 2, values: { name: 'A "b", c', barcode: '4006381333931', price: '1.50' } }]);
  });

  test.each([
    ['a mark of the byte order', `\ufeff${HEADER}A,1,2\n`],
    ['CRLF', `${HEADER}A,1,2\n`.replaceAll('\n', '\r\n')],
    ['no end of the last line', `${HEADER}A,1,2`],
    ['spaces in the header', `name, barcode , price\nA,1,2`],
    ['quotation marks in the header', `"name","barcode","price"\nA,1,2`],
  ])('are read with %s', async (_what, text) => {
    expect(await csv(text)).toEqual([{ line: 2, values: { name: 'A', barcode: '1', price: '2' } }]);
  });

  test('keep their line where lines are empty', async () => {
    expect((await csv(`\n${HEADER}\n\nA,1,2\n\nB,1,2\n\n`)).map(({ line }) => line)).toEqual([5, 7]);
  });

  test.each([
    ['not closed', '"A,1,2'],
    ['in the middle of a cell', 'A"b,1,2'],
    ['followed by more', '"A"b,1,2'],
  ])('one with a quotation mark that is %s is refused, and no other', async (_what, row) => {
    expect(await csv(`${HEADER}B,1,2\n${row}\nC,1,2\n"D",1,2\n`)).toEqual([
      { line: 2, values: expect.anything() },
      { line: 3, refusal: expect.objectContaining({ type: 'quotes' }) },
      { line: 4, values: expect.anything() },
      { line: 5, values: expect.objectContaining({ name: 'D' }) },
    ]);
  });

  test.each([
    ['A,1', 2],
    ['A,1,2,3', 4],
  ])('%s has too few or too many cells', async (row, count) => {
    expect(await csv(HEADER + row)).toEqual([
      { line: 2, refusal: { field: '', type: 'cells', message: `The row has ${count} cells, the header 3` } },
    ]);
  });

  test.each([
    ['nothing', '', 'The file is empty'],
    ['empty lines', '\n\r\n', 'The file is empty'],
    ['no header', 'Lamp,4006381333931,1\n', 'lacks "name", "barcode", "price", and has an unknown column "Lamp", "4006381333931", "1"'],
    ['a column missing', 'name,barcode\n', 'The header on line 1 lacks "price"'],
    ['an unknown column', 'name,barcode,price,colour\n', 'has an unknown column "colour"'],
    ['a column twice', 'name,barcode,price,name\n', 'has twice "name"'],
    ['other separators', 'name;barcode;price\n', 'has an unknown column "name;barcode;price"'],
    ['orders for a terminal', 'name,barcode,price,\u001b[2J\n', 'has an unknown column "?[2J"'],
    ['a header that is not closed', '"name,barcode,price\n', 'Line 1: A quotation mark is not closed'],
  ])('a file with %s is refused', async (_what, text, message) => {
    await expect(csv(text)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', message: expect.stringContaining(message) });
  });

  test('a file in UTF-16 is refused by its first line', async () => {
    const bytes = Buffer.from(`\ufeff${HEADER}`, 'utf16le');
    await expect(all(csvRows(readLines(piecesOf(bytes, [100]))))).rejects.toMatchObject({ message: 'Line 1: The line is not UTF-8' });
  });
});

describe('the rows of an NDJSON file', () => {
  test('are its objects; a number that a double would change is none', async () => {
    const text = '{"name":"A","barcode":"1","price":1.5,"pk":7}\r\n\n{"name":"B","price":0.100000000000000005551}';
    expect(await ndjson(text)).toEqual([
      { line: 1, values: { name: 'A', barcode: '1', price: 1.5, pk: 7 } },
      { line: 3, values: { name: 'B', price: new InexactNumber('0.100000000000000005551') } },
    ]);
  });

  test.each(['{', '[]', 'null', '1', '"a"', '{"name":"A"} {}', 'name,barcode,price'])('%s is refused, and no other', async (row) => {
    expect(await ndjson(`{"name":"A"}\n${row}\n{"name":"B"}\n`)).toEqual([
      { line: 1, values: { name: 'A' } },
      { line: 2, refusal: { field: '', type: 'json_invalid', message: 'The line is no JSON object' } },
      { line: 3, values: { name: 'B' } },
    ]);
  });

  test.each(['colour', '__proto__', 'constructor'])('one with an unknown column %s is refused', async (name) => {
    expect(await ndjson(`\ufeff{"name":"A","${name}":{"price":1}}`)).toMatchObject([{ line: 1, refusal: { type: 'unknown_column' } }]);
  });

  test.each(['', '\n\n', '\ufeff', ' \r\n'])('a file with nothing in it, %j, is refused', async (text) => {
    await expect(ndjson(text)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', message: 'The file is empty' });
  });
});

function csv(text: string): Promise<FileRow[]> {
  return all(csvRows(readLines(piecesOf(Buffer.from(text), [7]))));
}

function ndjson(text: string): Promise<FileRow[]> {
  return all(ndjsonRows(readLines(piecesOf(Buffer.from(text), [7]))));
}

function linesIn(bytes: AsyncIterable<Buffer>): Promise<Line[]> {
  return all(readLines(bytes));
}

async function all<T>(parts: AsyncIterable<readonly T[]>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of parts) found.push(...part);
  return found;
}

async function* piecesOf(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let [start, turn] = [0, 0]; start < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(start, start + size);
    start += size;
  }
}

function refusal(number: number, type: string): unknown {
  return { number, refusal: expect.objectContaining({ field: '', type }) };
}
