import { beforeEach, describe, expect, test } from '../support/jest.ts';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import { accountOf, record } from '../../src/features/audit/audit.log.ts';
import * as audit from '../../src/features/audit/audit.service.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import { globalId } from '../../src/api/node.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { walkFiveByTwos } from '../support/paging.ts';
import { PASSWORD, codeOf, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { trailOf } from '../support/trail.ts';

const shop = useShop();

const PAGE = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: AuditEntryFilter) {
  auditEntries(first: $first, after: $after, last: $last, before: $before, filter: $filter) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    edges { cursor node { id action actor { name } } }
  }
}`;
const NODE = 'query ($id: ID!) { node(id: $id) { id ... on AuditEntry { action } } }';
const HOUR = 3_600_000;

let reader: User;

beforeEach(async () => {
  reader = await shop.makeUser({ username: 'reader', scopes: ['audit:read'] });
});

describe('auditEntries', () => {
  test('the latest entries come first, each with all its fields', async () => {
    const ada = await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
    const { key, apiKey } = await apiKeys.createFor({ ...shop.context(), operator: 'olga' }, ada, {
      name: 'till',
      scopes: ['products:write'],
    });
    shop.advanceClock(HOUR);
    const create =
      'mutation { createProduct(input: { name: "Ink", barcode: "5901234123457", price: 2.5 }) { id } }';
    const { body, headers } = await shop.graphql(create, {}, { token: key });
    const { id } = body.data.createProduct;
    const fields =
      'at actor { kind name nodeId } action subject { kind name nodeId } changes { field before after } requestId network';
    const answer = await shop.graphql(
      `{ auditEntries { nodes { ${fields} } } }`,
      {},
      { as: reader },
    );
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const change = (field: string, after: unknown) => ({ field, before: null, after });
    expect(answer.body.data.auditEntries.nodes).toEqual([
      {
        at,
        actor: { kind: 'API_KEY', name: 'ada', nodeId: apiKey.id },
        action: 'product.created',
        subject: { kind: 'PRODUCT', name: 'Ink', nodeId: id },
        changes: [
          change('name', 'Ink'),
          change('barcode', '5901234123457'),
          change('price', '2.50'),
        ],
        requestId: headers.get('x-request-id'),
        network: '127.0.0.1',
      },
      {
        at,
        actor: { kind: 'OPERATOR', name: 'olga', nodeId: null },
        action: 'api_key.created',
        subject: { kind: 'API_KEY', name: 'till', nodeId: apiKey.id },
        changes: [change('owner', 'ada'), change('scopes', 'products:write')],
        requestId: null,
        network: null,
      },
    ]);
  });

  test('pages go forward and back, also with entries of the same time', async () => {
    await make(3);
    await shop.sql(`insert into audit_entry (at, actor_kind, actor_name, action, changes)
      select '2020-01-01Z', 'user', 'ada', 'product.changed', '[]' from generate_series(1, 2)`);
    const walked = await walkFiveByTwos(async (args) => (await page(args)).body.data.auditEntries);
    const pks = walked.map(({ edges }) => edges.map(pkOf));
    expect(pks).toEqual([[3, 2], [1, 5], [4], [1, 5], [3, 2]].map((each) => each.map(String)));
  });

  const filters: [string, () => object, string[]][] = [
    ['by whom', () => ({ actor: 'olga' }), ['account.enabled', 'account.disabled']],
    ['by what', () => ({ action: 'account.scopes_changed' }), ['account.scopes_changed']],
    ['by an account', () => ({ subject: reader.id }), ['account.scopes_changed']],
    ['by a product', () => ({ subject: globalId('Product', 1) }), ['product.created']],
    ['by an unknown API key', () => ({ subject: globalId('ApiKey', 'x') }), []],
    ['by its time: since', () => ({ since: shop.now() }), ['account.enabled']],
    [
      'by its time: before',
      () => ({ until: new Date(shop.now().getTime() - HOUR) }),
      ['product.created', 'account.disabled'],
    ],
    [
      'by several conditions',
      () => ({ actor: 'olga', action: 'account.disabled', until: shop.now() }),
      ['account.disabled'],
    ],
    [
      'by several conditions that match nothing',
      () => ({ actor: 'olga', subject: globalId('Product', 1) }),
      [],
    ],
    [
      'by nothing',
      () => ({}),
      ['account.enabled', 'account.scopes_changed', 'product.created', 'account.disabled'],
    ],
    [
      'by null',
      () => ({ actor: null, action: null, subject: null, since: null, until: null }),
      ['account.enabled', 'account.scopes_changed', 'product.created', 'account.disabled'],
    ],
  ];

  test.each(filters)('a filter selects entries %s', async (_by, filter, found) => {
    const ada = await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
    const olga = { ...shop.context(), operator: 'olga' };
    await accounts.setDisabled(olga, 'ada', true);
    await shop.sql('update "user" set disabled = false');
    shop.advanceClock(1_000);
    await shop.graphql(
      'mutation { createProduct(input: { name: "Ink", barcode: "5901234123457", price: 1 }) { id } }',
      {},
      { as: ada },
    );
    await shop.sql('update "user" set disabled = true where username = \'ada\'');
    shop.advanceClock(1_000 + HOUR);
    await accounts.changeScopes(shop.context(), 'reader', { add: ['users:read'] });
    shop.advanceClock(1_000);
    // The filter is built at the time of the last action.
    const now = shop.now();
    await accounts.setDisabled(
      { ...olga, now: () => new Date(now.getTime() + HOUR) },
      'ada',
      false,
    );
    const [all, first] = [
      await page({ filter: filter() }),
      await page({ first: 1, filter: filter() }),
    ];
    expect(all.body.errors).toBeUndefined();
    expect(actionsOf(all)).toEqual(found);
    expect(actionsOf(first)).toEqual(found.slice(0, 1));
    expect([
      all.body.data.auditEntries.totalCount,
      first.body.data.auditEntries.pageInfo.hasNextPage,
    ]).toEqual([found.length, found.length > 1]);
  });

  test.each([
    ['an unknown action', { filter: { action: 'product.painted' } }, 'filter.action'],
    ['an action in another case', { filter: { action: 'Product.Created' } }, 'filter.action'],
    ['a subject that is not an id', { filter: { subject: 'ada' } }, 'filter.subject'],
    ['a subject of another type', { filter: { subject: globalId('Item', 1) } }, 'filter.subject'],
    ['an actor with a NUL', { filter: { actor: 'a\0' } }, 'filter.actor'],
    ['a page of 101', { first: 101 }, 'first'],
    ['a page of none', { first: 0 }, 'first'],
    ['an invalid cursor', { after: 'x' }, 'after'],
  ])('%s is BAD_USER_INPUT', async (_what, args, field) => {
    const { body } = await page(args);
    expect(body.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(JSON.stringify(body.errors)).toContain(field);
  });

  test('a cursor of one filter is invalid for another', async () => {
    await make(2);
    const { startCursor } = (await page({})).body.data.auditEntries.pageInfo;
    expect((await page({ after: startCursor })).body.data.auditEntries.edges).toHaveLength(1);
    expect(codeOf(await page({ after: startCursor, filter: { actor: 'olga' } }))).toBe(
      'BAD_USER_INPUT',
    );
  });

  test('reading it records no entry', async () => {
    await make(1);
    const before = await trailOf(shop);
    await page({});
    await shop.graphql(NODE, { id: globalId('AuditEntry', 1) }, { as: reader });
    expect(await trailOf(shop)).toEqual(before);
  });
});

describe('read access', () => {
  test('U2 nobody without credentials', async () => {
    await make(1);
    expect(codeOf(await shop.graphql(PAGE))).toBe('UNAUTHENTICATED');
    expect((await shop.graphql(NODE, { id: globalId('AuditEntry', 1) })).body).toEqual({
      data: { node: null },
    });
  });

  test.each<[string, () => Promise<RequestOptions>]>([
    [
      'with all other scopes',
      async () => ({
        as: await shop.makeUser({ scopes: ['products:write', 'users:read', 'blog:write'] }),
      }),
    ],
    ['with a session without the scope', async () => ({ sessionKey: await narrowed() })],
    [
      'with an API key without the scope',
      async () => ({
        token: (await apiKeys.createFor(shop.context(), reader, { name: 'till', scopes: [] })).key,
      }),
    ],
    [
      'once the scope is revoked',
      async () => {
        const { key } = await apiKeys.createFor(shop.context(), reader, {
          name: 'till',
          scopes: ['audit:read'],
        });
        await accounts.changeScopes(shop.context(), 'reader', { remove: ['audit:read'] });
        return { token: key };
      },
    ],
  ])('U2 it is FORBIDDEN %s, also for own actions', async (_who, credentials) => {
    await make(1);
    const request = await credentials();
    for (const filter of [null, { actor: 'reader' }, { subject: reader.id }])
      expect(codeOf(await shop.graphql(PAGE, { filter }, request))).toBe('FORBIDDEN');
    expect((await shop.graphql(NODE, { id: globalId('AuditEntry', 1) }, request)).body).toEqual({
      data: { node: null },
    });
  });

  test('callers with the scope, also by an API key and by node(id:)', async () => {
    await make(1);
    const { key } = await apiKeys.createFor(shop.context(), reader, {
      name: 'collector',
      scopes: ['audit:read'],
    });
    expect(actionsOf(await shop.graphql(PAGE, {}, { token: key }))).toEqual([
      'api_key.created',
      'account.created',
    ]);
    const id = globalId('AuditEntry', 1);
    expect((await shop.graphql(NODE, { id }, { token: key })).body).toEqual({
      data: { node: { id, action: 'account.created' } },
    });
  });

  async function narrowed(): Promise<string> {
    const login = `mutation { login(username: "reader", password: "${PASSWORD}", scopes: ["users:read"]) { sessionKey } }`;
    return (await shop.graphql(login)).body.data.login.sessionKey as string;
  }
});

describe('the trail is append-only', () => {
  const REJECTED = /append-only/;

  test.each([
    ['an update', `update audit_entry set actor_name = 'bob'`],
    ['an update of no entry', `update audit_entry set actor_name = 'bob' where false`],
    [
      'an upsert',
      `insert into audit_entry select * from audit_entry on conflict (pk) do update set actor_name = 'bob'`,
    ],
    ['a deletion', 'delete from audit_entry'],
    ['a deletion of one entry', 'delete from audit_entry where pk = 1'],
    ['a truncation', 'truncate audit_entry'],
    ['a truncation with others', 'truncate product, audit_entry cascade'],
    [
      'an update that says it prunes',
      `do $$ begin perform set_config('shopfront.audit_prune', 'on', true); update audit_entry set action = 'a.b'; end $$`,
    ],
    [
      'a truncation that says it prunes',
      `do $$ begin perform set_config('shopfront.audit_prune', 'on', true); truncate audit_entry; end $$`,
    ],
  ])('U1 the database rejects %s, and nothing changes', async (_what, statement) => {
    await make(2);
    const before = await shop.sql('select * from audit_entry order by pk');
    await expect(shop.sql(statement)).rejects.toThrow(REJECTED);
    expect(await shop.sql('select * from audit_entry order by pk')).toEqual(before);
  });

  test('U1 nothing in the schema changes it', async () => {
    const { body } = await shop.graphql(
      '{ schema: __schema { mutationType { fields { name } } } }',
    );
    const names = body.data.schema.mutationType.fields.map(({ name }: { name: string }) => name);
    expect(names.filter((name: string) => /audit/i.test(name))).toEqual([]);
  });

  test('prune deletes older entries, records itself, and leaves the trail append-only', async () => {
    await make(2);
    shop.advanceClock(HOUR);
    await make(1);
    const before = shop.now();
    const ctx = () => ({ ...shop.context(), operator: 'olga' });
    expect(await audit.prune(ctx(), new Date(before.getTime() - HOUR / 2))).toBe(2);
    expect(await trailOf(shop)).toEqual([
      'anonymous account.created user:made0',
      'operator:olga audit.pruned',
    ]);
    const changes = await shop.sql(
      `select changes -> 0 ->> 'after' as entries, changes -> 1 ->> 'after' as "olderThan" from audit_entry where action = 'audit.pruned'`,
    );
    expect(changes).toEqual([
      { entries: '2', olderThan: new Date(before.getTime() - HOUR / 2).toISOString() },
    ]);
    await expect(shop.sql('delete from audit_entry')).rejects.toThrow(REJECTED);
    expect(await audit.prune(ctx(), new Date(before.getTime() - HOUR / 2))).toBe(0);
    expect(await trailOf(shop)).toHaveLength(2);
  });

  test('prune deletes some thousands per transaction, and records each', async () => {
    await shop.sql(`insert into audit_entry (at, actor_kind, actor_name, action, changes)
      select '2020-01-01Z', 'user', 'ada', 'product.changed', '[]' from generate_series(1, 6000)`);
    expect(await audit.prune({ ...shop.context(), operator: 'olga' }, new Date('2020-01-02'))).toBe(
      6_000,
    );
    const rows = await shop.sql(
      `select action, changes -> 0 ->> 'after' as entries from audit_entry order by pk`,
    );
    expect(rows).toEqual(['5000', '1000'].map((entries) => ({ action: 'audit.pruned', entries })));
  });

  test('the sweep deletes entries older than AUDIT_RETENTION_DAYS, and none without it', async () => {
    await make(2);
    shop.advanceClock(25 * HOUR);
    await make(1);
    const sweep = (auditRetentionDays?: number) => {
      const ctx = shop.context();
      return audit.sweep({ ...ctx, config: { ...ctx.config, auditRetentionDays } });
    };
    expect(await sweep()).toBe(0);
    expect(await sweep(2)).toBe(0);
    expect(await sweep(1)).toBe(2);
    expect(await trailOf(shop)).toEqual([
      'anonymous account.created user:made0',
      'operator:shopfront audit.pruned',
    ]);
    expect(await sweep(1)).toBe(0);
  });

  test('prune rejects a future time, and deletes nothing', async () => {
    await make(1);
    await expect(
      audit.prune(shop.context(), new Date(shop.now().getTime() + HOUR)),
    ).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(await trailOf(shop)).toHaveLength(1);
  });
});

/** Creates this many entries, as of now: accounts made0, made1 … were created. */
async function make(count: number): Promise<void> {
  for (let at = 0; at < count; at++)
    await record(
      shop.context(),
      'account.created',
      accountOf({ pk: 1_000 + at, username: `made${at}` }),
    );
}

function page(args: object): Promise<Answer> {
  return shop.graphql(PAGE, { ...args }, { as: reader });
}

function actionsOf({ body }: Answer): string[] {
  return body.data.auditEntries.edges.map(({ node }: { node: { action: string } }) => node.action);
}

function pkOf(edge: object): string {
  const { node } = edge as { node: { id: string } };
  return Buffer.from(node.id, 'base64url').toString().split(':')[1] ?? '';
}
