import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import fc, { type Arbitrary } from 'fast-check';
import type { User } from '../../src/features/users/user.entity.ts';
import {
  decimal,
  parseExact,
  faultOf,
  Fuzz,
  CONCURRENCY,
  MANY,
  RUNS,
  type FuzzRequest,
  type Reply,
} from '../support/fuzz.ts';
import { restProducts, storedProducts } from '../support/fuzz.apis.ts';
import { same, united, type Written } from '../support/fuzz.graphql.ts';
import {
  anyJson,
  anyText,
  barcodeText,
  lineText,
  numberText,
  priceText,
  quoted,
} from '../support/fuzz.values.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop({ LOG_LEVEL: 'info' });

const TIMEOUT = 600_000;

/** The writes of one user that the API has confirmed. No other writer changes the same objects. */
interface Writer {
  user: User;
  token: string;
  pk: string;
  entry: string;
  products: Map<string, object>;
  entries: Map<string, object>;
  items: Set<string>;
}

/** A write: its input as a literal or among the variables. */
interface Write {
  kind: keyof typeof WRITES;
  input: Written;
  isVariable: boolean;
}

const PRODUCT = '{ pk name barcode price }';
const ENTRY = '{ id title body published }';
/** The type of the input, and the field with its selection. */
const WRITES = {
  createProduct: ['ProductInput!', (input: string) => `createProduct(input: ${input}) ${PRODUCT}`],
  updateProduct: [
    'ProductPatch!',
    (input: string, { pk }: Writer) => `updateProduct(pk: "${pk}", input: ${input}) ${PRODUCT}`,
  ],
  createBlogEntry: [
    'BlogEntryInput!',
    (input: string) => `createBlogEntry(input: ${input}) ${ENTRY}`,
  ],
  updateBlogEntry: [
    'BlogEntryPatch!',
    (input: string, { entry }: Writer) =>
      `updateBlogEntry(id: "${entry}", input: ${input}) ${ENTRY}`,
  ],
  addItem: ['String!', (input: string) => `addItem(itemId: ${input}) { itemId }`],
} as const;

const line = fc.oneof(
  { weight: 8, arbitrary: quoted(lineText) },
  { weight: 1, arbitrary: quoted(anyText) },
);
const prose = fc.oneof(
  { weight: 8, arbitrary: quoted(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })) },
  { weight: 2, arbitrary: quoted(anyText) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...['y', '𝕏', '\n'].flatMap((unit) =>
        [8_000, 50_000, 50_001].map((count) => JSON.stringify(unit.repeat(count))),
      ),
    ),
  },
);
const product = {
  name: line,
  barcode: quoted(barcodeText),
  price: fc.oneof(
    priceText,
    priceText.map((text) => `"${text}"`),
    numberText,
  ),
};
const entry = { title: line, body: prose, published: fc.constantFrom('true', 'false') };
const writes: Arbitrary<Write> = fc.oneof(
  writeOf('createProduct', inputOf(product, 30)),
  writeOf('updateProduct', inputOf(product, 1)),
  writeOf('createBlogEntry', inputOf(entry, 10)),
  writeOf('updateBlogEntry', inputOf(entry, 1)),
  writeOf('addItem', same(line)),
);

let fuzz: Fuzz;
let writers: Writer[];

beforeAll(() => {
  fuzz = new Fuzz(shop);
});

afterAll(() => fuzz.stop());

beforeEach(async () => {
  writers = [];
  for (let number = 0; number < CONCURRENCY; number++) {
    const user = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const [{ pk, name, barcode, price }, { id, title, body, published }] = [
      await shop.makeProduct(),
      await shop.makeEntry(user),
    ];
    writers.push({
      user,
      token: shop.tokenOf(user, 3_600),
      pk: String(pk),
      entry: id,
      products: new Map([[String(pk), { name, barcode, price: decimal(price) }]]),
      entries: new Map([[id, { title, body, published }]]),
      items: new Set(),
    });
  }
});

test(
  'R24 GraphQL: REST returns what mutations stored, byte for byte as it was sent, and nothing else',
  async () => {
    const served = new Map<string, number>();
    await fuzz.attemptAll(writes, RUNS, async (write, number) => {
      const writer = writers[number];
      if (!writer) return 'no such writer';
      const request = requestOf(write, writer);
      const reply = await fuzz.sendRequest(request);
      const fault = faultOf(request, reply);
      const answered = parseExact(reply.text).data?.[write.kind];
      if (fault !== undefined || !answered)
        return reply.text.includes('INTERNAL_SERVER_ERROR') ? reply.text : fault;
      served.set(write.kind, (served.get(write.kind) ?? 0) + 1);
      return RECORD[write.kind](writer, answered, parseExact(write.input.json));
    });

    const products = writers.flatMap((writer) =>
      [...writer.products].map(([pk, values]) => ({ pk: decimal(pk), ...values })),
    );
    const stored = await storedProducts(shop);
    expect(stored).toEqual(products.toSorted((a, b) => Number(a.pk) - Number(b.pk)));
    expect(await restProducts(shop)).toEqual(stored);
    for (const { user, token, entries, items } of writers) {
      const blog = (await shop.rest('GET', '/blog', { token })).body as {
        creator: { username: string };
      }[];
      const own = blog
        .filter(({ creator }) => creator.username === user.username)
        .map(({ creator: _creator, ...values }) => values);
      expect(sorted(own)).toEqual(sorted([...entries.values()]));
      const listed = (await shop.rest('GET', '/users/me/items/', { token })).body as {
        item_id: string;
      }[];
      expect(listed.map(({ item_id }) => item_id).toSorted()).toEqual([...items].toSorted());
    }
    // Each write often succeeded: otherwise nothing would have been compared.
    for (const kind of Object.keys(WRITES))
      expect(served.get(kind) ?? 0).toBeGreaterThan(RUNS < MANY ? 0 : RUNS / 50);
  },
  TIMEOUT,
);

/** Compares the response to a write, and the REST response, with the input, and records it. */
const RECORD = {
  createProduct: (writer: Writer, answered: any, sent: any) =>
    recordProduct(writer, answered, sent),
  updateProduct: (writer: Writer, answered: any, sent: any) =>
    recordProduct(writer, answered, { ...writer.products.get(writer.pk), ...sent }),
  createBlogEntry: (writer: Writer, answered: any, sent: any) =>
    recordEntry(writer, answered, { published: false, ...sent }),
  updateBlogEntry: (writer: Writer, answered: any, sent: any) =>
    recordEntry(writer, answered, { ...writer.entries.get(writer.entry), ...sent }),
  addItem: async (writer: Writer, answered: any, sent: any): Promise<string | undefined> => {
    writer.items.add(sent.trim());
    return different(answered, { itemId: sent.trim() });
  },
};

async function recordProduct(
  { products, token }: Writer,
  { pk, ...answered }: any,
  sent: any,
): Promise<string | undefined> {
  const expected = { name: sent.name.trim(), barcode: sent.barcode, price: decimal(sent.price) };
  products.set(pk, expected);
  const { text } = await get(`/api/v1/shop/product/${pk}`, token);
  return (
    different(answered, expected) ?? different(parseExact(text), { pk: decimal(pk), ...expected })
  );
}

async function recordEntry(
  { entries }: Writer,
  { id, ...answered }: any,
  { title, body, published }: any,
): Promise<string | undefined> {
  const expected = { title: title.trim(), body, published };
  entries.set(id, expected);
  return different(answered, expected);
}

function different(actual: unknown, expected: unknown): string | undefined {
  return isDeepStrictEqual(actual, expected)
    ? undefined
    : `${JSON.stringify(expected)} was sent, but ${JSON.stringify(actual)} was returned`;
}

function get(path: string, token: string): Promise<Reply> {
  return fuzz.sendRequest({ method: 'GET', path, headers: { Authorization: `Bearer ${token}` } });
}

function requestOf({ kind, input, isVariable }: Write, writer: Writer): FuzzRequest {
  const [type, field] = WRITES[kind];
  const query = isVariable
    ? `mutation ($input: ${type}) { ${field('$input', writer)} }`
    : `mutation { ${field(input.literal, writer)} }`;
  const body = `{"query":${JSON.stringify(query)}${isVariable ? `,"variables":{"input":${input.json}}` : ''}}`;
  return {
    method: 'POST',
    path: '/graphql',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${writer.token}` },
    body,
  };
}

function writeOf(kind: Write['kind'], input: Arbitrary<Written>): Arbitrary<Write> {
  return fc
    .tuple(input, fc.boolean())
    .map(([written, isVariable]) => ({ kind, input: written, isVariable }));
}

/** An object of mostly valid fields. The higher `absent`, the fewer are absent or any JSON. */
function inputOf(fields: Record<string, Arbitrary<string>>, absent: number): Arbitrary<Written> {
  const members = Object.entries(fields).map(([name, value]) =>
    fc.oneof(
      { weight: absent * 2, arbitrary: same(value).map((written) => [name, written] as const) },
      {
        weight: 1,
        arbitrary: fc.oneof(
          fc.constant(undefined),
          anyJson.map((json) => [name, { literal: json, json }] as const),
        ),
      },
    ),
  );
  return fc.tuple(...members).map(united);
}

function sorted(values: readonly object[]): string[] {
  return values.map((value) => JSON.stringify(value, Object.keys(value).toSorted())).toSorted();
}
