import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { checkDigit } from '../../src/features/products/ean13.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const MANY = `mutation ($inputs: [ProductDraft!]!) {
  createProducts(inputs: $inputs) { product { id pk name barcode price createdAt updatedAt } error { code message fields { field message } } }
}`;
const TAKEN = {
  product: null,
  error: {
    code: 'CONFLICT',
    message: 'A product with this barcode already exists',
    fields: [{ field: 'barcode', message: 'A product with this barcode already exists' }],
  },
};

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ scopes: ['products:write'] });
});

const createAll = (inputs: unknown, as: User = writer): Promise<Answer> =>
  shop.graphql(MANY, { inputs }, { as });

describe('createProducts', () => {
  test('adds products, and returns each as product(pk:) does, in the order of the inputs', async () => {
    const { body } = await createAll([
      { name: ' Ink ', barcode: '5901234123457', price: '12.50' },
      { name: 'Lamp', barcode: '0012345678905', price: 0.1 },
    ]);
    const { data } = (
      await shop.graphql(
        '{ one: product(pk: 1) { ...F } two: product(pk: 2) { ...F } } fragment F on Product { id pk name barcode price createdAt updatedAt }',
      )
    ).body;
    expect(data).toMatchObject({
      one: { name: 'Ink', price: 12.5 },
      two: { barcode: '0012345678905', price: 0.1 },
    });
    expect(body.data.createProducts).toEqual([
      { product: data.one, error: null },
      { product: data.two, error: null },
    ]);
  });

  test('a rejected input does not prevent the others from being added', async () => {
    await shop.makeProduct({ barcode: '4006381333931' });
    const { body } = await createAll([
      { name: '', barcode: '5901234123456', price: '0.005' },
      { name: 'Ink', barcode: '5901234123457', price: 1 },
      { name: 'Lamp', barcode: '4006381333931', price: 1 },
    ]);
    const [bad, good, taken] = body.data.createProducts;
    expect(bad.product).toBeNull();
    expect(bad.error.code).toBe('BAD_USER_INPUT');
    expect(bad.error.fields.map(({ field }: { field: string }) => field)).toEqual([
      'name',
      'barcode',
      'price',
    ]);
    expect(good).toMatchObject({ product: { name: 'Ink' }, error: null });
    expect(taken).toEqual(TAKEN);
    expect(await names()).toEqual([expect.any(String), 'Ink']);
  });

  test('a price with more digits than a double holds is rejected, not rounded, as a variable and in the text', async () => {
    const sent =
      '{"inputs":[{"name":"Ink","barcode":"5901234123457","price":0.10000000000000000001}]}';
    const headers = { 'Content-Type': 'application/json' };
    const body = `{"query":${JSON.stringify(MANY)},"variables":${sent}}`;
    const inText = MANY.replace(/\(\$inputs.*?\)/, '').replace(
      '$inputs',
      '[{ name: "Ink", barcode: "5901234123457", price: 0.10000000000000000001 }]',
    );
    for (const answer of [
      await shop.rest('POST', '/graphql', { as: writer, headers, body }),
      await shop.graphql(inText, {}, { as: writer }),
    ]) {
      expect(answer.body.data.createProducts[0].error.fields).toEqual([
        { field: 'price', message: expect.any(String) },
      ]);
    }
    expect(await names()).toEqual([]);
  });

  test('of two inputs with one barcode, the first is added, and the second is a conflict', async () => {
    const barcode = '5901234123457';
    const { body } = await createAll([
      { name: '', barcode, price: 1 },
      { name: 'Ink', barcode, price: 1 },
      { name: 'Lamp', barcode, price: 1 },
    ]);
    const [bad, good, taken] = body.data.createProducts;
    expect([bad.error.code, good.product.name, taken]).toEqual(['BAD_USER_INPUT', 'Ink', TAKEN]);
  });

  test('a hundred are added by one statement, with primary keys in their order; a hundred and one are rejected', async () => {
    const inputs = drafts(101);
    const { body } = await createAll(inputs.slice(0, 100).toReversed());
    expect(
      body.data.createProducts.map(({ product }: { product: { pk: string } }) => product.pk),
    ).toEqual(Array.from({ length: 100 }, (_, index) => String(index + 1)));
    expect(
      await shop.sql(
        'select sum(writes)::int as writes, sum(rows)::int as rows from product_row_count',
      ),
    ).toMatchObject([{ rows: 100 }]);
    const rejected = await createAll(inputs);
    expect(rejected.body.errors[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    expect(await names()).toHaveLength(100);
  });

  test('costs the sum of its possible results', async () => {
    const json = { query: MANY, variables: { inputs: drafts(100) }, extensions: { cost: true } };
    const { body } = await shop.rest('POST', '/graphql', { as: writer, json });
    expect(body.extensions.cost.requested).toBe(400);
    const three = `mutation ($i: [ProductDraft!]!) { ${['a', 'b', 'c'].map((name) => `${name}: createProducts(inputs: $i) { product { pk } error { fields { field } } }`).join(' ')} }`;
    const rejected = await shop.graphql(three, { i: drafts(100) }, { as: writer });
    expect(rejected.body.errors[0].extensions.code).toBe('QUERY_TOO_COMPLEX');
  });

  test('several concurrent batches in any order add each product once, and none fails', async () => {
    const inputs = drafts(100);
    const answers = await Promise.all(
      [inputs, inputs.toReversed(), inputs, inputs.toReversed()].map((order) => createAll(order)),
    );
    expect(answers.flatMap(({ body }) => body.errors ?? [])).toEqual([]);
    const results = answers.flatMap(
      ({ body }) =>
        body.data.createProducts as { product: unknown; error: { code: string } | null }[],
    );
    expect(results.filter(({ product }) => product !== null)).toHaveLength(100);
    expect(results.every(({ error }) => error === null || error.code === 'CONFLICT')).toBe(true);
    expect(await names()).toHaveLength(100);
  });
});

function drafts(count: number): { name: string; barcode: string; price: string }[] {
  return Array.from({ length: count }, (_, index) => {
    const digits = `501${String(index).padStart(9, '0')}`;
    return { name: `Row ${index}`, barcode: digits + checkDigit(digits), price: '1.00' };
  });
}

async function names(): Promise<unknown[]> {
  return (await shop.sql('select name from product order by pk')).map(({ name }) => name);
}
