import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import fc, { type Arbitrary } from 'fast-check';
import type { User } from '../../src/features/users/user.entity.ts';
import { decimal, exactly, faultOf, Fuzz, LANES, MANY, RUNS, type Asked, type Reply } from '../support/fuzz.ts';
import { listedProducts, storedProducts } from '../support/fuzz.doors.ts';
import { same, united, type Written } from '../support/fuzz.graphql.ts';
import { anyJson, anyText, barcodeText, lineText, numberText, priceText, quoted } from '../support/fuzz.values.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop({ LOG_LEVEL: 'info' });

const TIMEOUT = 600_000;

/** What one lane has written, so far as it was told that it has: no other lane writes to it. */
interface Lane {
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
/** The type of the input, the field, and what is asked of the answer. */
const WRITES = {
  createProduct: ['ProductInput!', (input: string) => `createProduct(input: ${input}) ${PRODUCT}`],
  updateProduct: ['ProductPatch!', (input: string, { pk }: Lane) => `updateProduct(pk: "${pk}", input: ${input}) ${PRODUCT}`],
  createBlogEntry: ['BlogEntryInput!', (input: string) => `createBlogEntry(input: ${input}) ${ENTRY}`],
  updateBlogEntry: ['BlogEntryPatch!', (input: string, { entry }: Lane) => `updateBlogEntry(id: "${entry}", input: ${input}) ${ENTRY}`],
  addItem: ['String!', (input: string) => `addItem(itemId: ${input}) { itemId }`],
} as const;

const line = fc.oneof({ weight: 8, arbitrary: quoted(lineText) }, { weight: 1, arbitrary: quoted(anyText) });
const prose = fc.oneof(
  { weight: 8, arbitrary: quoted(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })) },
  { weight: 2, arbitrary: quoted(anyText) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...['y', '𝕏', '\n'].flatMap((unit) => [8_000, 50_000, 50_001].map((count) => JSON.stringify(unit.repeat(count)))),
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
let lanes: Lane[];

beforeAll(() => {
  fuzz = new Fuzz(shop);
});

afterAll(() => fuzz.stop());

beforeEach(async () => {
  lanes = [];
  for (let number = 0; number < LANES; number++) {
    const user = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const [{ pk, name, barcode, price }, { id, title, body, published }] = [await shop.makeProduct(), await shop.makeEntry(user)];
    lanes.push({
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
  'R24 GraphQL: what a mutation says that it stored, REST shows byte for byte as it was sent, and nothing else is stored',
  async () => {
    const served = new Map<string, number>();
    await fuzz.storm(writes, RUNS, async (write, number) => {
      const lane = lanes[number];
      if (!lane) return 'no such lane';
      const asked = requestOf(write, lane);
      const reply = await fuzz.ask(asked);
      const fault = faultOf(asked, reply);
      const answered = exactly(reply.text).data?.[write.kind];
      if (fault !== undefined || !answered) return reply.text.includes('INTERNAL_SERVER_ERROR') ? reply.text : fault;
      served.set(write.kind, (served.get(write.kind) ?? 0) + 1);
      return KEEP[write.kind](lane, answered, exactly(write.input.json));
    });

    const products = lanes.flatMap((lane) => [...lane.products].map(([pk, values]) => ({ pk: decimal(pk), ...values })));
    const stored = await storedProducts(shop);
    expect(stored).toEqual(products.toSorted((a, b) => Number(a.pk) - Number(b.pk)));
    expect(await listedProducts(shop)).toEqual(stored);
    for (const { user, token, entries, items } of lanes) {
      const blog = (await shop.rest('GET', '/blog', { token })).body as { creator: { username: string } }[];
      const own = blog.filter(({ creator }) => creator.username === user.username).map(({ creator: _creator, ...values }) => values);
      expect(sorted(own)).toEqual(sorted([...entries.values()]));
      const listed = (await shop.rest('GET', '/users/me/items/', { token })).body as { item_id: string }[];
      expect(listed.map(({ item_id }) => item_id).toSorted()).toEqual([...items].toSorted());
    }
    // Each write got through often: otherwise nothing would have been compared.
    for (const kind of Object.keys(WRITES)) expect(served.get(kind) ?? 0).toBeGreaterThan(RUNS < MANY ? 0 : RUNS / 50);
  },
  TIMEOUT,
);

/** For each write: compares what was answered, and what REST shows of it, with what was sent, and remembers that for the end. */
const KEEP = {
  createProduct: (lane: Lane, answered: any, sent: any) => keepProduct(lane, answered, sent),
  updateProduct: (lane: Lane, answered: any, sent: any) => keepProduct(lane, answered, { ...lane.products.get(lane.pk), ...sent }),
  createBlogEntry: (lane: Lane, answered: any, sent: any) => keepEntry(lane, answered, { published: false, ...sent }),
  updateBlogEntry: (lane: Lane, answered: any, sent: any) => keepEntry(lane, answered, { ...lane.entries.get(lane.entry), ...sent }),
  addItem: async (lane: Lane, answered: any, sent: any): Promise<string | undefined> => {
    lane.items.add(sent.trim());
    return different(answered, { itemId: sent.trim() });
  },
};

async function keepProduct({ products, token }: Lane, { pk, ...answered }: any, sent: any): Promise<string | undefined> {
  const meant = { name: sent.name.trim(), barcode: sent.barcode, price: decimal(sent.price) };
  products.set(pk, meant);
  const { text } = await get(`/api/v1/shop/product/${pk}`, token);
  return different(answered, meant) ?? different(exactly(text), { pk: decimal(pk), ...meant });
}

async function keepEntry({ entries }: Lane, { id, ...answered }: any, { title, body, published }: any): Promise<string | undefined> {
  const meant = { title: title.trim(), body, published };
  entries.set(id, meant);
  return different(answered, meant);
}

function different(shown: unknown, meant: unknown): string | undefined {
  return isDeepStrictEqual(shown, meant) ? undefined : `${JSON.stringify(meant)} was sent, and ${JSON.stringify(shown)} is shown`;
}

function get(path: string, token: string): Promise<Reply> {
  return fuzz.ask({ method: 'GET', path, headers: { Authorization: `Bearer ${token}` } });
}

function requestOf({ kind, input, isVariable }: Write, lane: Lane): Asked {
  const [type, field] = WRITES[kind];
  const query = isVariable ? `mutation ($input: ${type}) { ${field('$input', lane)} }` : `mutation { ${field(input.literal, lane)} }`;
  const body = `{"query":${JSON.stringify(query)}${isVariable ? `,"variables":{"input":${input.json}}` : ''}}`;
  return { method: 'POST', path: '/graphql', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${lane.token}` }, body };
}

function writeOf(kind: Write['kind'], input: Arbitrary<Written>): Arbitrary<Write> {
  return fc.tuple(input, fc.boolean()).map(([written, isVariable]) => ({ kind, input: written, isVariable }));
}

/** An object with each field as it should be, or now and then anything; one of so many is absent. */
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
