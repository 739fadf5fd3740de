import { describe, expect, test } from '../support/jest.ts';
import type { Context } from '../../src/request/context.ts';
import { checkDigit } from '../../src/features/products/ean13.ts';
import type { FileRow, RowProblem } from '../../src/features/products/files/file-columns.ts';
import {
  importProducts,
  type ImportOptions,
  type ImportReport,
} from '../../src/features/products/files/file-import.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const NOTHING = { created: 0, changed: 0, unchanged: 0, refused: 0 };
/** More than a batch, on a server and on the embedded database. */
const MANY = 5_500;

describe('an import', () => {
  test('creates new products, changes different ones, and leaves equal ones unchanged', async () => {
    const before = await shop.makeProduct({
      name: 'Lamp',
      barcode: '4006381333931',
      price: '12.50',
    });
    const same = await shop.makeProduct({ name: 'Tray', barcode: '0012345678905', price: '1.00' });
    shop.advanceClock(60_000);
    const { report } = await importRows([
      { name: ' Brass lamp ', barcode: '4006381333931', price: '12.5' },
      { name: 'Tray', barcode: '0012345678905', price: 1 },
      { name: 'Ink', barcode: '5901234123457', price: '0.10' },
    ]);
    expect(report).toEqual({ ...NOTHING, created: 1, changed: 1, unchanged: 1 });
    expect(await stored()).toEqual([
      [1, 'Brass lamp', '4006381333931', '12.50'],
      [2, 'Tray', '0012345678905', '1.00'],
      [3, 'Ink', '5901234123457', '0.10'],
    ]);
    const times = (await shop.sql('select created_at, updated_at from product order by pk')).map(
      (row) => Object.values(row).map((time) => new Date(time as Date)),
    );
    const [changed = [], unchanged = [], made = []] = times;
    expect(changed[0]).toEqual(before.createdAt);
    expect(Number(changed[1])).toBeGreaterThan(Number(before.updatedAt));
    expect(unchanged).toEqual([same.createdAt, same.updatedAt]);
    expect(made[0]).toEqual(made[1]);
  });

  test('assigns them in the order of the file in several batches', async () => {
    const all = rows(4 * MANY).toReversed();
    await importRows(all.filter((_row, index) => index % 1_000 === 0));
    const known = all.length / 1_000;
    await importRows(all);
    const added = (await stored()).slice(known);
    expect(added.map(([pk]) => pk)).toEqual(added.map((_row, index) => known + 1 + index));
    expect(added.map(([, , barcode]) => barcode)).toEqual(
      all.filter((_row, index) => index % 1_000 !== 0).map(({ barcode }) => barcode),
    );
  });

  test('rejects rows by the rules of a new product, by line and column, and imports the rest', async () => {
    const { report, problems } = await importRows([
      { name: 'Ink', barcode: '5901234123457', price: '1' },
      { name: '', barcode: '4006381333930', price: '1.005' },
      { name: 'a\0b', barcode: '4006381333931', price: -1 },
      { barcode: '4006381333931', price: '1' },
      { name: 'Lamp', barcode: '4006381333931', price: '9999999999.99' },
    ]);
    expect(report).toEqual({ ...NOTHING, created: 2, refused: 3 });
    expect(problems).toEqual([
      { line: 3, column: 'name', message: expect.any(String) },
      { line: 3, column: 'barcode', message: expect.any(String) },
      { line: 3, column: 'price', message: expect.any(String) },
      { line: 4, column: 'name', message: expect.any(String) },
      { line: 4, column: 'price', message: 'A price is 0 or more' },
      { line: 5, column: 'name', message: 'Field required' },
    ]);
  });

  test('imports the first of two rows with one barcode, and names its line at the other', async () => {
    const [first, ...others] = rows(MANY);
    const { report, problems } = await importRows([first, ...others, { ...first, name: 'Again' }]);
    expect(report).toEqual({ ...NOTHING, created: MANY, refused: 1 });
    expect(problems).toEqual([
      {
        line: MANY + 2,
        column: 'barcode',

        message: 'Duplicate barcode; first used on line 2',
      },
    ]);
  });

  test('imports names unchanged: quotation marks, backslashes, tabs of COPY, and every letter', async () => {
    const names = ['\\N', '\\.', 'a\\tb', `'"`, '{a,"b"}', 'NULL', 'é🧀', '%s$1'];
    await importRows(rows(names.length).map((row, index) => ({ ...row, name: names[index] })));
    expect((await stored()).map(([, name]) => name)).toEqual(names);
  });
});

describe('a dry run', () => {
  test('has the report of the import, and writes nothing', async () => {
    await importRows(rows(3));
    const before = await shop.sql('select * from product order by pk');
    const given = [
      ...rows(2),
      { ...rows(3)[2], price: '5' },
      { name: 'New', barcode: '5901234123457', price: '1' },
      { name: 'Bad' },
    ];
    const keys = () => shop.sql('select last_value, is_called from product_pk_seq');
    const unused = await keys();
    const dry = await importRows(given, { dryRun: true });
    expect(await keys()).toEqual(unused);
    expect(dry.report).toEqual({
      ...NOTHING,
      created: 1,
      changed: 1,
      unchanged: 2,
      refused: 1,
    });
    expect(await shop.sql('select * from product order by pk')).toEqual(before);
    expect(await importRows(given)).toEqual(dry);
  });
});

describe('concurrently', () => {
  test('two imports of the same rows create each product once', async () => {
    const all = rows(MANY);
    const [one, two] = await Promise.all([importRows(all), importRows(all)]);
    expect(one.report.created + two.report.created).toBe(MANY);
    expect(await stored()).toHaveLength(MANY);
  });

  test('imports of the same products in other orders, and API requests, do not deadlock', async () => {
    const all = rows(1_000);
    const user = await shop.makeUser({ scopes: ['products:write'] });
    await importRows(all.slice(0, 500));
    const imports = [all, all.toReversed()].map((order, turn) =>
      importRows(order.map((row) => ({ ...row, price: `${turn + 2}` }))),
    );
    const requests = all.slice(495, 505).map(({ name, barcode }, turn) =>
      turn < 5
        ? shop.graphql(
            `mutation { updateProduct(pk: ${496 + turn}, input: { price: 9 }) { pk } }`,
            {},
            { as: user },
          )
        : shop.rest('POST', '/api/v1/shop/product/', {
            as: user,
            json: { name, barcode, price: 9 },
          }),
    );
    await Promise.all(imports);
    const answers = await Promise.all(requests);
    expect(answers.every(({ status }) => [200, 201, 409].includes(status))).toBe(true);
    const found = await stored();
    expect(
      found.map(([, , barcode]) => String(barcode)).toSorted((a, b) => Number(a) - Number(b)),
    ).toEqual(all.map(({ barcode }) => barcode));
    expect(found.every(([, , , price]) => ['2.00', '3.00', '9.00'].includes(String(price)))).toBe(
      true,
    );
  });
});

interface Values extends Record<string, unknown> {
  name?: unknown;
}

function context(): Context {
  return shop.context();
}

/** Imports rows as those of a file whose first line is its header. */
async function importRows(
  values: readonly (Values | undefined)[],
  options: Partial<ImportOptions> = {},
): Promise<{ report: ImportReport; problems: RowProblem[] }> {
  const problems: RowProblem[] = [];
  const report = await importProducts(context(), fileRows(values), {
    ...options,
    onRejected: (problem) => problems.push(problem),
  });
  // Written outside the app, and to be visible at once.
  await shop.sql('select 1');
  return { report, problems };
}

async function* fileRows(values: readonly (Values | undefined)[]): AsyncGenerator<FileRow> {
  for (const [index, row] of values.entries()) yield { line: index + 2, values: row ?? {} };
}

/** Returns this many rows of distinct products, in the order of their barcodes, always the same. */
function rows(count: number): { name: string; barcode: string; price: string }[] {
  return Array.from({ length: count }, (_, index) => {
    const digits = `501${String(index).padStart(9, '0')}`;
    return { name: `Row ${index}`, barcode: digits + checkDigit(digits), price: '1.00' };
  });
}

async function stored(): Promise<unknown[][]> {
  return (
    await shop.sql('select pk::int, name, barcode, price::text from product order by pk')
  ).map((row) => Object.values(row));
}
