import { beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import {
  isInterfaceType,
  isObjectType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { globalId } from '../../src/api/node.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';
import { wholeSelection } from '../support/whole-query.ts';

// A query of every field exceeds the default limits.
const shop = useShop(
  { GRAPHQL_MAX_COST: '100000000' },
  { graphqlMaxDepth: 50, graphqlMaxTokens: 100_000, graphqlMaxRootFields: 100 },
);

const NODE = 'query ($id: ID!) { node(id: $id) { __typename id } }';

/** A client's cache: the fields of each object by its name, with other objects as their names. */
interface Cache {
  objects: Map<string, Map<string, string>>;
  /** The fields that have had two values in one object. */
  conflicts: Set<string>;
}

let schema: GraphQLSchema;
let ada: User;
let bob: User;
let sessionKey: string;
/** The id of one object of each type. */
let made: Record<string, string>;

beforeAll(async () => {
  schema = await makeSchema();
});

beforeEach(async () => {
  ada = await shop.makeUser({
    username: 'ada',
    scopes: ['products:write', 'blog:write', 'users:read', 'audit:read'],
  });
  bob = await shop.makeUser({ username: 'bob', scopes: ['blog:write', 'audit:read'] });
  const { session, key } = await sessions.open(shop.context(), ada, null);
  sessionKey = key;
  // Each is the first row of its table, so all have the same key.
  const [product, item, entry] = [
    await shop.makeProduct(),
    await shop.makeItem(ada),
    await shop.makeEntry(ada),
  ];
  const { apiKey } = await apiKeys.createFor(shop.context(), ada, { name: 'till', scopes: [] });
  made = {
    ApiKey: apiKey.id,
    Product: product.id,
    User: ada.id,
    Item: item.id,
    BlogEntry: entry.id,
    Session: session.id,
    AuditEntry: globalId('AuditEntry', 1),
  };
  for (const user of [ada, bob]) {
    for (const published of [true, false]) await shop.makeEntry(user, { published });
    await shop.makeItem(user);
    await apiKeys.createFor(shop.context(), user, { name: 'stock', scopes: [] });
    await sessions.open(shop.context(), user, null);
  }
  await shop.makeProducts(3);
});

describe('a type that is a Node', () => {
  test('has one object in this file, and no other type has', () => {
    const types = schema.getPossibleTypes(typeNamed('Node') as GraphQLInterfaceType);
    expect(Object.keys(made).toSorted()).toEqual(types.map(({ name }) => name).toSorted());
  });

  test('is every type with an id, and its id is never null', () => {
    const withId = Object.values(schema.getTypeMap()).filter(
      (type) => isObjectType(type) && 'id' in type.getFields(),
    ) as GraphQLObjectType[];
    expect(withId.map(({ name }) => name).toSorted()).toEqual(Object.keys(made).toSorted());
    expect(withId.map((type) => String(type.getFields()['id']?.type))).toEqual(
      withId.map(() => 'ID!'),
    );
  });

  test.each(['ApiKey', 'Product', 'User', 'Item', 'BlogEntry', 'Session', 'AuditEntry'])(
    '%s: node(id:) finds the same object',
    async (type) => {
      const { body } = await shop.graphql(NODE, { id: made[type] }, { sessionKey });
      expect(body).toEqual({ data: { node: { __typename: type, id: made[type] } } });
    },
  );

  test('no two objects have the same id, although their keys are the same', async () => {
    const { body } = await shop.graphql(whole(), {}, { sessionKey });
    const found = objectsIn(body.data).filter(({ id }) => id !== undefined);
    const names = new Map(found.map(({ id, __typename }) => [String(id), String(__typename)]));
    expect(new Set(names.values())).toEqual(new Set(Object.keys(made)));
    for (const { id, __typename } of found) expect(names.get(String(id))).toBe(__typename);
  });

  test('has the same id when it is changed and when it is deleted', async () => {
    const as = { sessionKey };
    const answers = [
      await shop.graphql(
        'mutation { updateProduct(pk: 1, input: { name: "Other", barcode: "5901234123457" }) { id } }',
        {},
        as,
      ),
      await shop.graphql('mutation { deleteProduct(pk: 1) { id } }', {}, as),
    ];
    expect(answers.map(({ body }) => Object.values(body.data))).toEqual([
      [{ id: made['Product'] }],
      [{ id: made['Product'] }],
    ]);
  });

  test('has the same id for all callers', async () => {
    const query = '{ products { nodes { __typename id } } users { nodes { __typename id } } }';
    const [one, other] = [
      await shop.graphql(query, {}, { as: ada }),
      await shop.graphql(query, {}, { as: bob }),
    ];
    expect(other.body).toEqual(one.body);
    const anonymous = await shop.graphql('{ products { nodes { __typename id } } }');
    expect(anonymous.body.data.products).toEqual(one.body.data.products);
  });
});

describe('a cache that names objects by __typename and id', () => {
  test('stores one object for each, and a response never has two values for a field', async () => {
    const { objects, conflicts } = normalised(
      (await shop.graphql(whole(), {}, { sessionKey })).body.data,
    );
    expect([...conflicts]).toEqual([]);
    const count = (type: string) =>
      [...objects.keys()].filter((name) => name.startsWith(`${type}:`)).length;
    // Bob's draft is his own, and so are his sessions and keys.
    expect(Object.fromEntries(Object.keys(made).map((type) => [type, count(type)]))).toEqual({
      ApiKey: 2,
      Product: 4,
      User: 2,
      Item: 3,
      BlogEntry: 4,
      Session: 2,
      AuditEntry: 3,
    });
  });

  test("except for another user's email, which is shown where that user is the author (docs/decisions.md)", async () => {
    const { conflicts } = normalised(
      (await shop.graphql(whole(['restUsage']), {}, { as: bob })).body.data,
    );
    expect([...conflicts]).toEqual(['User.email']);
  });

  test('replaces an object by the result of a mutation', async () => {
    const as: RequestOptions = { sessionKey };
    const before = normalised(
      (await shop.graphql('{ product(pk: 1) { __typename id name } }', {}, as)).body.data,
    );
    const after = normalised(
      (
        await shop.graphql(
          'mutation { updateProduct(pk: 1, input: { name: "Other" }) { __typename id name } }',
          {},
          as,
        )
      ).body.data,
    );
    expect([...after.objects.keys()]).toEqual([...before.objects.keys()]);
    expect([...after.objects.values()][0]?.get('name')).toBe('"Other"');
  });
});

function whole(without: readonly string[] = []): string {
  const ids = `nodes(ids: ${JSON.stringify(Object.values(made))}) ${wholeSelection(schema, typeNamed('Node'))}`;
  return wholeSelection(schema, typeNamed('Query'), without).replace(
    / \}$/,
    ` ${ids} product(pk: 1) ${wholeSelection(schema, typeNamed('Product'))} }`,
  );
}

function typeNamed(name: string): GraphQLObjectType | GraphQLInterfaceType {
  const type = schema.getType(name);
  if (!isObjectType(type) && !isInterfaceType(type)) throw new Error(`unknown type ${name}`);
  return type;
}

/** The cache after a response, normalized by the default rule of Apollo Client. */
function normalised(data: unknown): Cache {
  const cache: Cache = { objects: new Map(), conflicts: new Set() };
  store(cache, 'ROOT', '', data);
  cache.objects.delete('ROOT');
  return cache;
}

// An object without an id is a part of its parent.
function store(cache: Cache, owner: string, path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null)
    return write(cache, owner, path, JSON.stringify(value));
  const { __typename: type, id } = value as Record<string, unknown>;
  if (typeof id !== 'string') {
    for (const [field, own] of Object.entries(value))
      store(cache, owner, path === '' ? field : `${path}.${field}`, own);
    return;
  }
  const name = `${String(type)}:${id}`;
  write(cache, owner, path, name);
  for (const [field, own] of Object.entries(value)) store(cache, name, field, own);
}

function write({ objects, conflicts }: Cache, owner: string, path: string, value: string): void {
  const fields = objects.get(owner) ?? new Map<string, string>();
  if ((fields.get(path) ?? value) !== value) conflicts.add(`${owner.split(':')[0]}.${path}`);
  objects.set(owner, fields.set(path, value));
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = Array.isArray(value) ? [] : [value as Record<string, unknown>];
  return [...own, ...Object.values(value).flatMap(objectsIn)];
}
