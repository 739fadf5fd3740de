import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  isInterfaceType,
  isNonNullType,
  isObjectType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import * as sessions from '../../src/auth/session.service.ts';
import { globalId } from '../../src/kit/node.ts';
import { makeSchema } from '../../src/server/schema.ts';
import type { User } from '../../src/users/user.entity.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';
import { breachesOf, wholeSelection } from '../support/whole-query.ts';

// All of everything is more than anyone may ask for.
const shop = useShop({
  GRAPHQL_MAX_TOKENS: '100000',
  GRAPHQL_MAX_DEPTH: '50',
  GRAPHQL_MAX_ROOT_FIELDS: '100',
  GRAPHQL_MAX_COST: '100000000',
});

/** One case of a field that may be null: a query in which it is, and one in which it is not, with the way to it. */
interface Case {
  path: string[];
  isNull: string;
  isThere: string;
}

const NOTHING = globalId('Product', 999);
const ANYTHING = globalId('Product', 1);

/** For each field of an answer that may be null, why it may. */
const CASES: Record<string, Case> = {
  'Query.me': { path: ['me'], isNull: '{ me { username } }', isThere: '{ me { username } }' },
  'Query.node': { path: ['node'], isNull: `{ node(id: "${NOTHING}") { id } }`, isThere: `{ node(id: "${ANYTHING}") { id } }` },
  'Query.nodes[]': {
    path: ['nodes', '0'],
    isNull: `{ nodes(ids: ["${NOTHING}"]) { id } }`,
    isThere: `{ nodes(ids: ["${ANYTHING}"]) { id } }`,
  },
  'Query.product': { path: ['product'], isNull: '{ product(pk: 999) { name } }', isThere: '{ product(pk: 1) { name } }' },
  'Query.productByBarcode': {
    path: ['productByBarcode'],
    isNull: '{ productByBarcode(barcode: "5901234123457") { name } }',
    isThere: '{ productByBarcode(barcode: "4006381333931") { name } }',
  },
  'User.email': {
    path: ['users', 'nodes', '0', 'email'],
    isNull: '{ users(last: 1) { nodes { username email } } }',
    isThere: '{ users(first: 1) { nodes { username email } } }',
  },
  'User.fullName': {
    path: ['users', 'nodes', '0', 'fullName'],
    isNull: '{ users(last: 1) { nodes { username fullName } } }',
    isThere: '{ users(first: 1) { nodes { username fullName } } }',
  },
  'Session.userAgent': {
    path: ['me', 'sessions', 'nodes', '0', 'userAgent'],
    isNull: '{ me { sessions(last: 1) { nodes { userAgent } } } }',
    isThere: '{ me { sessions(first: 1) { nodes { userAgent } } } }',
  },
  'PageInfo.startCursor': {
    path: ['products', 'pageInfo', 'startCursor'],
    isNull: '{ products(filter: { search: "nothing" }) { pageInfo { startCursor } } }',
    isThere: '{ products { pageInfo { startCursor } } }',
  },
  'PageInfo.endCursor': {
    path: ['products', 'pageInfo', 'endCursor'],
    isNull: '{ products(filter: { search: "nothing" }) { pageInfo { endCursor } } }',
    isThere: '{ products { pageInfo { endCursor } } }',
  },
};

/** Where it is null it is asked for without credentials; all else is asked for by the same user. */
const OF_NOBODY = 'Query.me';
/** The ordinary way, a plan, a plan whose answer is kept, and what is kept. */
const TIMES = [1, 2, 3, 4];

let schema: GraphQLSchema;
let ada: User;
let bob: User;
let reader: User;
let sessionKey: string;
/** Of what everyone sees who is signed in. */
let ids: string[];

beforeAll(async () => {
  schema = await makeSchema();
});

beforeEach(async () => {
  ada = await shop.makeUser({ username: 'ada', fullName: 'Ada', scopes: ['products:write', 'blog:write'] });
  reader = await shop.makeUser({ username: 'reader', email: null, scopes: ['users:read'] });
  bob = await shop.makeUser({ username: 'bob', disabled: true, scopes: ['blog:write'] });
  const product = await shop.makeProduct({ name: 'Lamp', barcode: '4006381333931', price: '0.00' });
  ids = [ada.id, bob.id, reader.id, product.id];
  for (const user of [ada, bob, reader]) {
    await shop.makeItem(user);
    ids.push((await shop.makeEntry(user)).id);
    await shop.makeEntry(user, { published: false });
  }
  await sessions.open(shop.context(), ada, null);
  shop.pass(1_000);
  const { key } = await sessions.open({ ...shop.context(), userAgent: 'test' }, ada, null);
  sessionKey = key;
});

describe('a field of an answer that may be null', () => {
  test('has its case here, each of them and no other', () => {
    expect(Object.keys(CASES).toSorted()).toEqual(nullable(schema));
  });

  test.each(Object.entries(CASES))(
    '%s is null in this case, without an error, and is not in the other',
    async (name, { path, isNull, isThere }) => {
      const without = await shop.graphql(isNull, {}, name === OF_NOBODY ? {} : { sessionKey });
      expect([without.body.errors, valueAt(without.body.data, path)]).toEqual([undefined, null]);
      const having = await shop.graphql(isThere, {}, { sessionKey });
      expect([having.body.errors, valueAt(having.body.data, path) ?? null]).toEqual([undefined, expect.anything()]);
    },
  );
});

describe('a field that may not be null never is, and no list holds null', () => {
  const viewers: [string, () => RequestOptions][] = [
    ['a user in a session', () => ({ sessionKey })],
    ['a user who may see little of others', () => ({ as: ada })],
    ['a user who may read all users', () => ({ as: reader })],
  ];

  test.each(viewers)('for %s, in an answer with all that there is', async (_who, credentials) => {
    const query = typeNamed('Query');
    const whole = wholeSelection(schema, query).replace(
      / \}$/,
      ` nodes(ids: ${JSON.stringify(ids)}) ${wholeSelection(schema, typeNamed('Node'))} }`,
    );
    for (const _ of TIMES) {
      const { body } = await shop.graphql(whole, {}, credentials());
      expect(body.errors).toBeUndefined();
      expect(body.data.nodes).toHaveLength(ids.length);
      expect(breachesOf(schema, body.data, query)).toEqual([]);
    }
  });

  test('for a caller without credentials, in an answer with all that everyone sees', async () => {
    const query = typeNamed('Query');
    const products = wholeSelection(schema, typeNamed('ProductConnection'));
    const queries = [
      `{ __typename products ${products} }`,
      `{ __typename products ${products} me { __typename id } node(id: "${ada.id}") { __typename id } }`,
    ];
    for (const whole of queries) {
      for (const _ of TIMES) {
        const { body } = await shop.graphql(whole);
        expect([body.errors, body.data.me ?? null, body.data.node ?? null]).toEqual([undefined, null, null]);
        expect(breachesOf(schema, body.data, query)).toEqual([]);
      }
    }
  });

  test("what is another user's own is empty, not null: scopes, items, sessions", async () => {
    const query =
      '{ users(first: 100) { nodes { username email scopes items { totalCount nodes { id } } sessions { totalCount edges { cursor } } } } }';
    const { body } = await shop.graphql(query, {}, { as: ada });
    expect(body.errors).toBeUndefined();
    expect(body.data.users.nodes.find(({ username }: User) => username === 'bob')).toEqual({
      username: 'bob',
      email: null,
      scopes: [],
      items: { totalCount: 0, nodes: [] },
      sessions: { totalCount: 0, edges: [] },
    });
  });

  test('where a caller may not read at all, the error stands at the field, and data is what the type allows', async () => {
    const { body } = await shop.graphql('{ me { username } users { totalCount } }');
    expect([body.data, body.errors[0].path]).toEqual([null, ['users']]);
  });
});

/** The fields of answers whose type allows null, and the lists whose items do. */
function nullable(of: GraphQLSchema): string[] {
  return Object.values(of.getTypeMap())
    .filter((type): type is GraphQLObjectType => isObjectType(type) && !type.name.startsWith('__'))
    .flatMap((type) =>
      Object.values(type.getFields()).flatMap((field) => [
        ...(isNonNullType(field.type) ? [] : [`${type.name}.${field.name}`]),
        ...(/\w\]/.test(String(field.type)) ? [`${type.name}.${field.name}[]`] : []),
      ]),
    )
    .toSorted();
}

function typeNamed(name: string): GraphQLObjectType | GraphQLInterfaceType {
  const type = schema.getType(name);
  if (!isObjectType(type) && !isInterfaceType(type)) throw new Error(`there is no ${name}`);
  return type;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, part) => (found as Record<string, unknown> | undefined)?.[part], value);
}
