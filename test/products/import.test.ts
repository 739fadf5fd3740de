import { describe, expect, test } from '../support/jest.ts';
import type { Context } from '../../src/request/context.ts';
import { readTime } from '../../src/database/sql.ts';
import { checkDigit } from '../../src/features/products/check-digit.ts';
import type { FileRow, RowProblem } from '../../src/features/products/files/file-columns.ts';
import {
  importProducts,
  sweep,
  type ImportOptions,
  type ImportReport,
} from '../../src/features/products/files/file-import.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const NOTHING = { read: 0, created: 0, changed: 0, unchanged: 0, skipped: 0, refused: 0 };
const DAY_MS = 24 * 3_600_000;
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
    expect(report).toEqual({ ...NOTHING, read: 3, created: 1, changed: 1, unchanged: 1 });
    expect(await stored()).toEqual([
      [1, 'Brass lamp', '4006381333931', '12.50'],
      [2, 'Tray', '0012345678905', '1.00'],
      [3, 'Ink', '5901234123457', '0.10'],
    ]);
    const times = (await shop.sql('select created_at, updated_at from product order by pk')).map(
      (row) => Object.values(row).map(readTime),
    );
    const [changed = [], unchanged = [], made = []] = times;
    expect(changed[0]).toEqual(before.createdAt);
    expect(Number(changed[1])).toBeGreaterThan(Number(before.updatedAt));
    expect(unchanged).toEqual([same.createdAt, same.updatedAt]);
    expect(made[0]).toEqual(made[1]);
  });

  test('is visible in both APIs, with the correct count', async () => {
    await importRows(rows(MANY));
    const { body } = await shop.graphql('{ products(first: 1) { totalCount } }');
    expect(body.data.products.totalCount).toBe(MANY);
    expect(
      (await shop.rest('GET', `/api/v2/shop/products?limit=1&offset=${MANY - 1}`)).body.items,
    ).toMatchObject([{ pk: MANY }]);
  });

  test('assigns primary keys in the order of the file, and none to existing products', async () => {
    const all = rows(20);
    await importRows(all.toReversed());
    await importRows(all);
    await importRows(all.map((row) => ({ ...row, price: '2' })));
    expect((await stored()).map(([, , barcode]) => barcode)).toEqual(
      all.toReversed().map(({ barcode }) => barcode),
    );
    expect(await shop.sql('select last_value::int as last from product_pk_seq')).toEqual([
      { last: 20 },
    ]);
  });

  test('assigns them in the order of the file also with concurrent batches', async () => {
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
    expect(report).toEqual({ ...NOTHING, read: 5, created: 2, refused: 3 });
    expect(problems).toEqual([
      { line: 3, column: 'name', type: 'string_too_short', message: expect.any(String) },
      { line: 3, column: 'barcode', type: 'ean13_check_digit', message: expect.any(String) },
      { line: 3, column: 'price', type: 'decimal_max_places', message: expect.any(String) },
      { line: 4, column: 'name', type: 'string_control_characters', message: expect.any(String) },
      { line: 4, column: 'price', type: 'greater_than_equal', message: 'A price is 0 or more' },
      { line: 5, column: 'name', type: 'missing', message: 'Field required' },
    ]);
  });

  test('has the same errors as the REST API', async () => {
    const row = { name: 'x'.repeat(256), barcode: '400638133393x', price: 'much' };
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const { detail } = (await shop.rest('POST', '/api/v1/shop/product/', { as: user, json: row }))
      .body;
    const { problems } = await importRows([row]);
    expect(problems).toEqual(
      detail.map(({ type, loc, msg }: { type: string; loc: string[]; msg: string }) => ({
        line: 2,
        column: loc[1],
        type,
        message: msg,
      })),
    );
  });

  test('imports the first of two rows with one barcode, and names its line at the other', async () => {
    const [first, ...others] = rows(MANY);
    const { report, problems } = await importRows([first, ...others, { ...first, name: 'Again' }]);
    expect(report).toEqual({ ...NOTHING, read: MANY + 1, created: MANY, refused: 1 });
    expect(problems).toEqual([
      {
        line: MANY + 2,
        column: 'barcode',
        type: 'duplicate',
        message: 'Duplicate barcode; first used on line 2',
      },
    ]);
  });

  test('a rejected row does not reserve its barcode', async () => {
    const [row] = rows(1);
    const { report } = await importRows([{ ...row, price: 'x' }, row]);
    expect(report).toMatchObject({ created: 1, refused: 1 });
  });

  test('with stopOnError ends at the first rejected row, and keeps those before it', async () => {
    const [first, second, third] = rows(3);
    const { report, problems } = await importRows([first, { ...second, price: 'x' }, third], {
      stopOnError: true,
    });
    expect(report).toEqual({ ...NOTHING, read: 2, created: 1, refused: 1 });
    expect(problems.map(({ line }) => line)).toEqual([3]);
    expect(await stored()).toHaveLength(1);
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
    const dry = await importRows(given, { dryRun: true });
    expect(dry.report).toEqual({
      ...NOTHING,
      read: 5,
      created: 1,
      changed: 1,
      unchanged: 2,
      refused: 1,
    });
    expect(await shop.sql('select * from product order by pk')).toEqual(before);
    expect(await shop.sql('select last_value::int as last from product_pk_seq')).toEqual([
      { last: 3 },
    ]);
    expect(await importRows(given)).toEqual(dry);
  });
});

describe('an interrupted import', () => {
  test('resumes where it stopped, and reports the skipped rows', async () => {
    const all = rows(MANY);
    const done = await interrupted(all);
    expect(done).toBeGreaterThan(0);
    // Stored batches are not imported again, so later changes of their products stay.
    await shop.sql(`update product set name = 'Changed since' where pk = 1`);
    const { report } = await importRows(all);
    expect(report).toEqual({ ...NOTHING, read: MANY, created: MANY - done, skipped: done });
    expect((await stored())[0]).toEqual([1, 'Changed since', expect.anything(), expect.anything()]);
  });

  test('once it is complete, is run in full again', async () => {
    const all = rows(MANY);
    await interrupted(all);
    await importRows(all);
    expect((await importRows(all)).report).toEqual({ ...NOTHING, read: MANY, unchanged: MANY });
    expect(await shop.sql('select hash from product_import_batch')).toEqual([]);
  });

  test('starts over if a row of a stored batch differs', async () => {
    const [first, ...others] = rows(MANY);
    const done = await interrupted([first, ...others]);
    const { report } = await importRows([{ ...first, price: '5' }, ...others]);
    expect(report).toEqual({
      ...NOTHING,
      read: MANY,
      created: MANY - done,
      changed: 1,
      unchanged: done - 1,
    });
  });

  test('resumes if later rows differ', async () => {
    const all = rows(MANY);
    const done = await interrupted(all);
    const { report } = await importRows(all.slice(0, MANY - 10));
    expect(report).toMatchObject({ created: MANY - 10 - done, skipped: done });
  });

  test('starts over with fromStart, and a day later', async () => {
    const all = rows(MANY);
    const done = await interrupted(all);
    expect((await importRows(all, { fromStart: true })).report).toMatchObject({
      skipped: 0,
      unchanged: done,
    });
    await interrupted(all);
    shop.advanceClock(DAY_MS + 1_000);
    expect((await importRows(all)).report).toEqual({ ...NOTHING, read: MANY, unchanged: MANY });
  });

  test('with fromStart, interrupted again, counts only its own batches as stored', async () => {
    const all = rows(3 * MANY);
    const before = await interrupted(all);
    await shop.sql(`update product set name = 'Changed since'`);
    await interrupted(all.slice(0, MANY), { fromStart: true });
    const again = await countOf(`name <> 'Changed since'`);
    expect(again).toBeLessThan(before);
    const { report } = await importRows(all);
    expect(report).toEqual({
      ...NOTHING,
      read: all.length,
      created: all.length - before,
      changed: before - again,
      skipped: again,
    });
  });

  test('is included in a dry run, with or without fromStart', async () => {
    const all = rows(MANY);
    const done = await interrupted(all);
    const dry = await importRows(all, { dryRun: true, fromStart: true });
    expect(dry.report).toEqual({ ...NOTHING, read: MANY, created: MANY - done, unchanged: done });
    expect((await importRows(all)).report).toMatchObject({ skipped: done });
  });

  test('is not changed by a dry run', async () => {
    const all = rows(MANY);
    const done = await interrupted(all);
    const expected = { ...NOTHING, read: MANY, created: MANY - done, skipped: done };
    expect((await importRows(all, { dryRun: true })).report).toEqual(expected);
    expect((await importRows(all)).report).toEqual(expected);
  });

  test('expires after a day', async () => {
    await interrupted(rows(MANY));
    expect(await sweep(context())).toBe(0);
    shop.advanceClock(DAY_MS + 1_000);
    expect(await sweep(context())).toBeGreaterThan(0);
    expect(await shop.sql('select hash from product_import_batch')).toEqual([]);
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
  return { ...shop.context(), inCopyTransaction: shop.database.inCopyTransaction };
}

/** Imports rows as those of a file whose first line is its header, in chunks. */
async function importRows(
  values: readonly (Values | undefined)[],
  options: Partial<ImportOptions> = {},
): Promise<{ report: ImportReport; problems: RowProblem[] }> {
  const problems: RowProblem[] = [];
  const report = await importProducts(context(), inChunks(values), {
    ...options,
    onRejected: (some) => problems.push(...some),
  });
  // Written outside the app, and to be visible at once.
  await shop.sql('select 1');
  return { report, problems };
}

/** Imports rows until the first batch is stored, then fails. Returns the number of products. */
async function interrupted(
  values: readonly (Values | undefined)[],
  options: Partial<ImportOptions> = {},
): Promise<number> {
  let onStored = (): void => undefined;
  const isStored = new Promise<void>((done) => void (onStored = done));
  const breakingOff = async function* () {
    yield* inChunks(values.slice(0, -1));
    await isStored;
    throw new Error('interrupted');
  };
  const importing = importProducts(context(), breakingOff(), {
    ...options,
    onRejected: () => undefined,
    onProgress: () => onStored(),
  });
  await expect(importing).rejects.toThrow('interrupted');
  return countOf('true');
}

async function countOf(condition: string): Promise<number> {
  const [row] = await shop.sql(`select count(*)::int as count from product where ${condition}`);
  return Number(row?.['count']);
}

async function* inChunks(values: readonly (Values | undefined)[]): AsyncGenerator<FileRow[]> {
  const found = values.map((row, index): FileRow => ({ line: index + 2, values: row ?? {} }));
  for (let start = 0; start < found.length; start += 700) yield found.slice(start, start + 700);
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
