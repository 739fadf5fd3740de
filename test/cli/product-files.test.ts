import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from '../support/jest.ts';
import type { CommandContext } from '../../src/cli/command-context.ts';
import { readRows } from '../../src/cli/product-files.ts';
import { InexactNumber } from '../../src/core/exact-json.ts';
import type { FileRow, Format } from '../../src/features/products/files/file-columns.ts';

const HEADER = 'name,barcode,price\n';

describe('the rows of a CSV file', () => {
  test.each([
    ['a byte order mark', `\ufeff${HEADER}A,1,2\n`],
    ['CRLF', `${HEADER}A,1,2\n`.replaceAll('\n', '\r\n')],
    ['blanks around cells', `name, barcode , price\n A , 1\t,2 `],
    ['blanks around quotation marks', `name, "barcode", "price"\n"A" , "1", "2"`],
    ['names in any case', 'Name,BARCODE,Price\nA,1,2'],
    ['no line break at the end', `${HEADER}A,1,2`],
  ])('are read with %s', async (_what, text) => {
    expect(await rows('csv', text)).toEqual([
      { line: 2, values: { name: 'A', barcode: '1', price: '2' } },
    ]);
  });

  test('keep the columns of an export, in any order', async () => {
    const text = 'price,pk,barcode,name\n1.50,7,4006381333931,"A ""b"", c"\n';
    expect(await rows('csv', text)).toEqual([
      { line: 2, values: { name: 'A "b", c', barcode: '4006381333931', price: '1.50', pk: '7' } },
    ]);
  });

  test('are those that were written, with any cells and chunks (RFC 4180)', async () => {
    const cell = fc
      .array(fc.constantFrom('a', '"', '""', ',', ' ', '\n', ';', "'", 'é'), { maxLength: 8 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ name: cell, barcode: cell, price: cell }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        async (written, size) => {
          const filled = written.map((row) => ({ ...row, price: `1${row.price}` }));
          const text = filled.map((row) => Object.values(row).map(quoted).join()).join('\n');
          expect((await rows('csv', HEADER + text, size)).map(({ values }) => values)).toEqual(
            filled,
          );
        },
      ),
    );
  });

  test.each([
    ['A,1', 2],
    ['A,1,12,50', 4],
  ])('%s is rejected for its number of cells, and the next row is read', async (row, count) => {
    expect(await rows('csv', `${HEADER}${row}\n\nB,1,2\n`)).toEqual([
      {
        line: 2,
        error: {
          field: '',
          type: 'cells',
          message: `The row has ${count} cells, but the header has 3`,
        },
      },
      { line: 4, values: { name: 'B', barcode: '1', price: '2' } },
    ]);
  });

  test.each([
    ['another separator', 'name;barcode;price\nA;1;2\n', 'The header lacks the columns name, '],
    ['a column missing', 'name,barcode\n', 'The header lacks the columns price'],
    ['an open quotation mark', `${HEADER}"A,1,2\nB,1,2\n`, 'Quote Not Closed'],
    ['text after a quotation mark', `${HEADER}"A"b,1,2\n`, 'Invalid Closing Quote'],
    ['a record that is too long', `${HEADER}"${'A\n'.repeat(40_000)}`, 'Max Record Size'],
  ])('end with an error at %s', async (_what, text, message) => {
    await expect(rows('csv', text)).rejects.toThrow(message);
  });
});

describe('the rows of an NDJSON file', () => {
  test('are its objects; a number that a double would change is not rounded', async () => {
    const text =
      '\ufeff{"name":"A","price":1.5}\r\n\n{"name":"B","price":0.100000000000000005551}\n';
    expect(await rows('ndjson', text)).toEqual([
      { line: 1, values: { name: 'A', price: 1.5 } },
      { line: 3, values: { name: 'B', price: new InexactNumber('0.100000000000000005551') } },
    ]);
  });

  test.each(['{', 'null', '1', '"a"', '{"name":"A"} {}', 'name,barcode,price'])(
    'only %s is rejected',
    async (row) => {
      const error = {
        field: '',
        type: 'json_invalid',
        message: 'The line is not a JSON object',
      };
      expect(await rows('ndjson', `{"name":"A"}\n${row}\n{"name":"B"}\n`)).toEqual([
        { line: 1, values: { name: 'A' } },
        { line: 2, error },
        { line: 3, values: { name: 'B' } },
      ]);
    },
  );
});

test.each<Format>(['csv', 'ndjson'])('text that is not UTF-8 is rejected: %s', async (format) => {
  await expect(rows(format, Buffer.from([0x41, 0xe9, 0x0a]))).rejects.toThrow('utf-8');
});

async function rows(format: Format, text: string | Buffer, size = 7): Promise<FileRow[]> {
  const bytes = Buffer.from(text);
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  const stdin = Readable.from(chunks);
  const found: FileRow[] = [];
  for await (const row of readRows({ stdin } as unknown as CommandContext, '-', format))
    found.push(row);
  return found;
}

function quoted(cell: string): string {
  return `"${cell.replaceAll('"', '""')}"`;
}
