import { beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import {
  isInterfaceType,
  isNonNullType,
  isObjectType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as usage from '../../src/features/rest-usage/rest-usage.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { globalId } from '../../src/api/node.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';
import { breachesOf, wholeSelection } from '../support/whole-query.ts';

// A query of every field exceeds the default limits.
const shop = useShop(
  { GRAPHQL_MAX_COST: '100000000' },
  { graphqlMaxDepth: 50, graphqlMaxTokens: 100_000, graphqlMaxRootFields: 100 },
);

/** A nullable field: its path, a query in which it is null, and one in which it is not. */
interface Case {
  path: string[];
  isNull: string;
  isPresent: string;
  /** The caller of both, if not ada in a session. */
  as?: () => User;
}

const NOTHING = globalId('Product', 999);
const ANYTHING = globalId('Product', 1);

/** The case of each nullable output field. */
const CASES: Record<string, Case> = {
  'Query.me': { path: ['me'], isNull: '{ me { username } }', isPresent: '{ me { username } }' },
  'Query.node': {
    path: ['node'],
    isNull: `{ node(id: "${NOTHING}") { id } }`,
    isPresent: `{ node(id: "${ANYTHING}") { id } }`,
  },
  'Query.nodes[]': {
    path: ['nodes', '0'],
    isNull: `{ nodes(ids: ["${NOTHING}"]) { id } }`,
    isPresent: `{ nodes(ids: ["${ANYTHING}"]) { id } }`,
  },
  'Query.product': {
    path: ['product'],
    isNull: '{ product(pk: 999) { name } }',
    isPresent: '{ product(pk: 1) { name } }',
  },
  'Query.productByBarcode': {
    path: ['productByBarcode'],
    isNull: '{ productByBarcode(barcode: "5901234123457") { name } }',
    isPresent: '{ productByBarcode(barcode: "4006381333931") { name } }',
  },
  'Product.barcodeWarning': {
    path: ['products', 'nodes', '0', 'barcodeWarning'],
    isNull: '{ products(first: 1) { nodes { barcodeWarning } } }',
    isPresent: '{ products(last: 1) { nodes { barcodeWarning } } }',
  },
  'User.email': {
    path: ['users', 'nodes', '0', 'email'],
    isNull: '{ users(last: 1) { nodes { username email } } }',
    isPresent: '{ users(first: 1) { nodes { username email } } }',
  },
  'User.fullName': {
    path: ['users', 'nodes', '0', 'fullName'],
    isNull: '{ users(last: 1) { nodes { username fullName } } }',
    isPresent: '{ users(first: 1) { nodes { username fullName } } }',
  },
  'Session.userAgent': {
    path: ['me', 'sessions', 'nodes', '0', 'userAgent'],
    isNull: '{ me { sessions(last: 1) { nodes { userAgent } } } }',
    isPresent: '{ me { sessions(first: 1) { nodes { userAgent } } } }',
  },
  'ApiKey.lastUsedAt': {
    path: ['me', 'apiKeys', 'nodes', '0', 'lastUsedAt'],
    isNull: '{ me { apiKeys(first: 1) { nodes { lastUsedAt } } } }',
    isPresent: '{ me { apiKeys(last: 1) { nodes { lastUsedAt } } } }',
  },
  ...Object.fromEntries(
    ['subject', 'requestId', 'network'].map((field) => [
      `AuditEntry.${field}`,
      ofEntries(field, field === 'subject' ? `${field} { name }` : field),
    ]),
  ),
  'AuditActor.name': ofEntries('actor.name', 'actor { name }'),
  'AuditActor.nodeId': ofEntries('actor.nodeId', 'actor { nodeId }'),
  'AuditedChange.before': ofEntries('changes.0.before', 'changes { before }'),
  'AuditedChange.after': ofEntries('changes.0.after', 'changes { after }'),
  'RestUsageLine.endpoint': ofUsage('endpoint', 'CLIENT'),
  'RestUsageLine.client': ofUsage('client', 'ENDPOINT'),
  'CreateProductResult.product': {
    path: ['createProducts', '0', 'product'],
    isNull: `mutation { createProducts(inputs: [${draft('1')}]) { product { pk } } }`,
    isPresent: `mutation { createProducts(inputs: [${draft('5901234123457')}]) { product { pk } } }`,
  },
  'CreateProductResult.error': {
    path: ['createProducts', '0', 'error'],
    isNull: `mutation { createProducts(inputs: [${draft('5901234123457')}]) { error { code } } }`,
    isPresent: `mutation { createProducts(inputs: [${draft('1')}]) { error { code } } }`,
  },
  'PageInfo.startCursor': {
    path: ['products', 'pageInfo', 'startCursor'],
    isNull: '{ products(filter: { search: "nothing" }) { pageInfo { startCursor } } }',
    isPresent: '{ products { pageInfo { startCursor } } }',
  },
  'PageInfo.endCursor': {
    path: ['products', 'pageInfo', 'endCursor'],
    isNull: '{ products(filter: { search: "nothing" }) { pageInfo { endCursor } } }',
    isPresent: '{ products { pageInfo { endCursor } } }',
  },
};

/** Types of subscriptions alone: event-stream.test.ts has the cases of their fields. */
const SUBSCRIPTION_TYPES = new Set(['ProductChange']);

/** The field that is null without credentials; all other queries have those of the same user. */
const ANONYMOUS = 'Query.me';
/** Resolvers, compiled operation, compiled operation that fills the cache, and the cache. */
const TIMES = [1, 2, 3, 4];

let schema: GraphQLSchema;
let ada: User;
let bob: User;
let reader: User;
let sessionKey: string;
/** Ids of objects that every signed-in user may read. */
let ids: string[];

beforeAll(async () => {
  schema = await makeSchema();
});

beforeEach(async () => {
  ada = await shop.makeUser({
    username: 'ada',
    fullName: 'Ada',
    scopes: ['products:write', 'blog:write', 'audit:read'],
  });
  reader = await shop.makeUser({
    username: 'reader',
    email: null,
    scopes: ['users:read', 'audit:read'],
  });
  bob = await shop.makeUser({ username: 'bob', disabled: true, scopes: ['blog:write'] });
  const product = await shop.makeProduct({ name: 'Lamp', barcode: '4006381333931', price: '0.00' });
  await shop.makeProduct({ barcode: '2000000000008' });
  ids = [ada.id, bob.id, reader.id, product.id];
  for (const user of [ada, bob, reader]) {
    await shop.makeItem(user);
    ids.push((await shop.makeEntry(user)).id);
    await shop.makeEntry(user, { published: false });
  }
  await sessions.open(shop.context(), ada, null);
  shop.advanceClock(1_000);
  const { key } = await sessions.open({ ...shop.context(), userAgent: 'test' }, ada, null);
  sessionKey = key;
  for (const name of ['used', 'new']) {
    await apiKeys.createFor(shop.context(), ada, { name, scopes: [] });
    shop.advanceClock(1_000);
  }
  await shop.sql(`update api_key set last_used_at = now() where name = 'used'`);
  shop.calls.count('GET /blog', 'till/1', 'ada', shop.now());
  await usage.store(shop.context(), shop.calls);
  // All that can be null is so in the latest entry, and nothing in the first.
  await shop.sql(`
    insert into audit_entry (at, actor_kind, actor_name, actor_pk, request_id, network, action, subject_kind, subject_key, subject_name, changes)
    values ('2020-01-01Z', 'user', 'ada', ${ada.pk}, 'x', '192.0.2.1', 'product.changed', 'product', '1', 'Lamp', '[{"field":"name","before":"a","after":"b"}]'),
      ('2099-01-01Z', 'anonymous', null, null, null, null, 'products.imported', null, null, null, '[{"field":"name","before":null,"after":null}]')`);
});

describe('a nullable output field', () => {
  test('has one case in this file, and no other field has', () => {
    expect(Object.keys(CASES).toSorted()).toEqual(nullable(schema));
  });

  test.each(Object.entries(CASES))(
    '%s is null in one case, without an error, and not in the other',
    async (name, { path, isNull, isPresent, as }) => {
      const request = as ? { as: as() } : { sessionKey };
      const without = await shop.graphql(isNull, {}, name === ANONYMOUS ? {} : request);
      expect([without.body.errors, valueAt(without.body.data, path)]).toEqual([undefined, null]);
      const having = await shop.graphql(isPresent, {}, request);
      expect([having.body.errors, valueAt(having.body.data, path) ?? null]).toEqual([
        undefined,
        expect.anything(),
      ]);
    },
  );
});

describe('a non-null field is never null, and no list contains null', () => {
  const viewers: [string, () => RequestOptions][] = [
    ['a user in a session', () => ({ sessionKey })],
    ['a user without users:read', () => ({ as: ada })],
    ['a user with users:read', () => ({ as: reader })],
  ];

  test.each(viewers)('for %s, in a response with all fields', async (_caller, credentials) => {
    const query = typeNamed('Query');
    const without = credentials().as === reader ? [] : ['restUsage'];
    const whole = wholeSelection(schema, query, without).replace(
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

  test('for a caller without credentials, in a response with all public fields', async () => {
    const query = typeNamed('Query');
    const products = wholeSelection(schema, typeNamed('ProductConnection'));
    const queries = [
      `{ __typename products ${products} }`,
      `{ __typename products ${products} me { __typename id } node(id: "${ada.id}") { __typename id } }`,
    ];
    for (const whole of queries) {
      for (const _ of TIMES) {
        const { body } = await shop.graphql(whole);
        expect([body.errors, body.data.me ?? null, body.data.node ?? null]).toEqual([
          undefined,
          null,
          null,
        ]);
        expect(breachesOf(schema, body.data, query)).toEqual([]);
      }
    }
  });

  test("another user's private fields are empty, not null: scopes, items, sessions", async () => {
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

  test('where a caller may not read at all, the error has the path of the field, and data is what the type allows', async () => {
    const { body } = await shop.graphql('{ me { username } users { totalCount } }');
    expect([body.data, body.errors[0].path]).toEqual([null, ['users']]);
  });
});

/** The fields of answers whose type allows null, and the lists whose items do. */
function nullable(of: GraphQLSchema): string[] {
  return Object.values(of.getTypeMap())
    .filter(
      (type): type is GraphQLObjectType =>
        isObjectType(type) && !type.name.startsWith('__') && !SUBSCRIPTION_TYPES.has(type.name),
    )
    .flatMap((type) =>
      Object.values(type.getFields()).flatMap((field) => [
        ...(isNonNullType(field.type) ? [] : [`${type.name}.${field.name}`]),
        ...(/\w\]/.test(String(field.type)) ? [`${type.name}.${field.name}[]`] : []),
      ]),
    )
    .toSorted();
}

/** A case of the first entry and of the latest. */
function ofEntries(path: string, fields: string): Case {
  return {
    path: ['auditEntries', 'nodes', '0', ...path.split('.')],
    isNull: `{ auditEntries(first: 1) { nodes { ${fields} } } }`,
    isPresent: `{ auditEntries(last: 1) { nodes { ${fields} } } }`,
  };
}

/** A case of the calls of one endpoint by one client. */
function ofUsage(field: string, by: string): Case {
  return {
    path: ['restUsage', 'lines', '0', field],
    isNull: `{ restUsage(by: ${by}) { lines { ${field} } } }`,
    isPresent: `{ restUsage { lines { ${field} } } }`,
    as: () => reader,
  };
}

function draft(barcode: string): string {
  return `{ name: "Ink", barcode: "${barcode}", price: 1 }`;
}

function typeNamed(name: string): GraphQLObjectType | GraphQLInterfaceType {
  const type = schema.getType(name);
  if (!isObjectType(type) && !isInterfaceType(type)) throw new Error(`unknown type ${name}`);
  return type;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (found, part) => (found as Record<string, unknown> | undefined)?.[part],
    value,
  );
}
