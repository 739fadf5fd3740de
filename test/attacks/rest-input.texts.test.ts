import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const BY_PK = 'query ($pk: ID!) { product(pk: $pk) { name } }';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk name } }';
const WRITE_ENTRY = 'mutation ($input: BlogEntryInput!) { createBlogEntry(input: $input) { id } }';
const SEARCH =
  'query ($filter: ProductFilter) { products(filter: $filter) { nodes { pk } totalCount } }';
/** Part of every text sent, to search for where it must not appear. */
const CANARY = 'kanarie7';

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
});

describe('R9: a name', () => {
  test.each([
    ['one character', 'x'],
    ['255 characters', 'x'.repeat(255)],
    ['255 code points of two halves each', '𝕏'.repeat(255)],
    ['right-to-left text', 'קפה טחון'],
    ['a direction override', '\u202eexe.yap\u202c'],
    ['direction isolates', '\u2067a\u2069'],
    ['a family of emoji', '👨‍👩‍👧‍👦'],
    ['a flag and a skin tone', '🏴󠁧󠁢󠁳󠁣󠁴󠁿👍🏽'],
    ['255 code points of joined emoji', '🧑‍🚀'.repeat(85)],
    ['many combining marks', `Z${'\u0300'.repeat(254)}`],
    ['a composed letter', '\u00e9'],
    ['a decomposed letter', 'e\u0301'],
    ['a ligature and a long s', 'ﬁ ſ'],
    ['a zero-width space inside', 'a\u200bb'],
    ['a variation selector', '☃\ufe0e'],
    ['private-use characters', '\ue000\u{10ffff}'],
    ['markup', '<script>alert(1)</script>'],
    ['markup in an attribute', `"><img src=x onerror='alert(1)'>&amp;&lt;`],
    ['a template', '{{7*7}}${7*7}<%= 7*7 %>#{7*7}'],
    ['a formula', '=HYPERLINK("http://evil.example")'],
    ['a format string', '%s%n%x$1$$:name?'],
    ['the word null', 'null'],
    ['a backslash at its end', 'a\\'],
    ['a backslash and quotes', `\\ " ' \\u0000 %s $1 ?`],
    ['a line separator', 'a\u2028b'],
    ['a paragraph separator', 'a\u2029b'],
    ['a soft hyphen', 'a\u00adb'],
    ['a noncharacter', 'a\uffffb'],
  ])('R9 %s is accepted, and every endpoint returns the same bytes', async (_what, name) => {
    const made = await shop.rest('POST', PRODUCT, {
      as: writer,
      json: { name, barcode: shop.newBarcode(), price: 1 },
    });
    expect(made.status).toBe(201);
    const pk: number = made.body.pk;
    const read = [
      made.body.name,
      (await shop.rest('GET', PRODUCT + pk)).body.name,
      (await shop.rest('GET', '/api/v1/shop/products')).body[0].name,
      (await shop.rest('GET', '/api/v2/shop/products')).body.items[0].name,
      (await shop.graphql(BY_PK, { pk: String(pk) })).body.data.product.name,
    ];
    expect(read.map((text: string) => Buffer.from(text).toString('hex'))).toEqual(
      read.map(() => Buffer.from(name).toString('hex')),
    );
    expect(await shop.sql('select name from product')).toEqual([{ name }]);
  });

  test.each([
    ['no character', '', 'string_too_short'],
    ['a space', ' ', 'string_too_short'],
    ['spaces of every kind', ' \t\n\r\u00a0\u2003\u3000\ufeff', 'string_too_short'],
    ['256 characters', 'x'.repeat(256), 'string_too_long'],
    ['256 code points of two halves each', '𝕏'.repeat(256), 'string_too_long'],
    ['as many characters as the body holds', 'x'.repeat(16_000), 'string_too_long'],
    ['a NUL', `${CANARY}\0`, 'string_control_characters'],
    ['a NUL inside', `a\0${CANARY}`, 'string_control_characters'],
    ['the first half of a pair', `${CANARY}\ud83d`, 'string_control_characters'],
    ['the second half of a pair', `\ude00${CANARY}`, 'string_control_characters'],
    ['the halves in reverse order', `${CANARY}\ude00\ud83d`, 'string_control_characters'],
    ['a terminal escape', `\u001b[31m${CANARY}`, 'string_control_characters'],
    ['a line break', `${CANARY}\r\nSet-Cookie: a=b`, 'string_control_characters'],
    ['a tab', `a\t${CANARY}`, 'string_control_characters'],
    ['a delete character', `a\u007f${CANARY}`, 'string_control_characters'],
    ['the first control character of C1', `a\u0080${CANARY}`, 'string_control_characters'],
    ['a next line', `a\u0085${CANARY}`, 'string_control_characters'],
    ['the last control character of C1', `${CANARY}\u009f`, 'string_control_characters'],
  ])('R9 %s is 422 in both APIs, not repeated, and not stored', async (_what, name, type) => {
    const json = { name, barcode: shop.newBarcode(), price: 1 };
    const rest = await shop.rest('POST', PRODUCT, { as: writer, json });
    expect([rest.status, rest.body.detail[0]]).toEqual([
      422,
      { type, loc: ['body', 'name'], msg: expect.any(String) },
    ]);
    const graphql = await shop.graphql(CREATE, { input: json }, { as: writer });
    expect(graphql.body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
    expect(rest.text + graphql.text + shop.logged.join('')).not.toContain(CANARY);
    expect(await shop.sql('select * from product')).toEqual([]);
    expect(
      (await shop.rest('POST', PRODUCT, { as: writer, json: { ...json, name: 'Pen' } })).status,
    ).toBe(201);
  });

  test('R9 10 MB are 413', async () => {
    const json = { name: 'x'.repeat(10 * 1024 * 1024), barcode: shop.newBarcode(), price: 1 };
    expect((await shop.rest('POST', PRODUCT, { as: writer, json })).status).toBe(413);
    expect(await shop.sql('select * from product')).toEqual([]);
    expect(
      (await shop.rest('POST', PRODUCT, { as: writer, json: { ...json, name: 'Pen' } })).status,
    ).toBe(201);
  });
});

describe('R21: SQL and ORM operators', () => {
  const TEXTS = [
    `${CANARY}'; drop table product; --`,
    `${CANARY}' or '1'='1`,
    `${CANARY}" or 1=1 --`,
    `${CANARY}'||(select email from "user" limit 1)||'`,
    `${CANARY}') union select * from "user" --`,
    `${CANARY}\\'; select pg_sleep(30); --`,
    `${CANARY}$$; drop table product; $$`,
    `${CANARY}/* */ -- $1 ? ?? :name @name`,
    `${CANARY}%27%20or%201%3D1`,
    `${CANARY}' and extractvalue(1, concat(0x7e, version())) --`,
    `E'${CANARY}\\x27'`,
    `{"${CANARY}":{"$gt":""}}`,
  ];
  const OBJECTS: object[] = [
    { $gt: '' },
    { $ne: null },
    { $in: [CANARY] },
    { $or: [{}, {}] },
    { $not: { pk: 0 } },
    { $like: '%' },
    { $re: '.*' },
    { $fulltext: CANARY },
    { $exists: true },
    { $hasKey: CANARY },
    { $contains: [CANARY] },
    { __raw: CANARY },
    { sql: `'; drop table product`, params: [] },
    { toString: CANARY },
    { length: 1, 0: CANARY },
    [{ $gt: '' }],
    [[CANARY]],
  ];
  const UNKNOWN = { username: 'alice', password: PASSWORD };

  test.each(TEXTS)('R21 %s is plain text at every endpoint, and in no statement', async (text) => {
    await shop.makeProduct();
    const good = { name: 'Pen', barcode: shop.newBarcode(), price: 1 };
    const json = (values: object) => ({ as: writer, json: values });
    const header = (name: string) => ({
      as: writer,
      json: good,
      headers: { [name]: encodeURIComponent(text) },
    });
    const requests: [number, () => Promise<Answer>][] = [
      [
        201,
        () => shop.rest('POST', PRODUCT, json({ ...good, barcode: shop.newBarcode(), name: text })),
      ],
      [422, () => shop.rest('POST', PRODUCT, json({ ...good, barcode: text }))],
      [422, () => shop.rest('POST', PRODUCT, json({ ...good, price: text }))],
      [
        201,
        () =>
          shop.rest('POST', PRODUCT, {
            ...header('Idempotency-Key'),
            json: { ...good, barcode: shop.newBarcode() },
          }),
      ],
      [401, () => shop.rest('POST', '/session/login', json({ ...UNKNOWN, username: text }))],
      [
        401,
        () =>
          shop.rest(
            'POST',
            '/session/login',
            json({ ...UNKNOWN, username: writer.username, password: text }),
          ),
      ],
      [401, () => shop.rest('POST', '/session/logout', json({ session_key: text }))],
      [401, () => shop.rest('POST', '/api/v2/auth/login', json({ session_key: text }))],
      [401, () => shop.rest('POST', '/api/v2/auth/login', json({ ...UNKNOWN, username: text }))],
      [
        401,
        () =>
          shop.rest(
            'GET',
            `/api/v2/auth/login?${String(new URLSearchParams({ username: text, password: text }))}`,
          ),
      ],
      [401, () => shop.rest('POST', '/token', { form: { username: text, password: text } })],
      // Unknown scopes are dropped.
      [
        200,
        () =>
          shop.rest('POST', '/login', {
            form: { username: writer.username, password: PASSWORD, scope: text },
          }),
      ],
      [
        401,
        () =>
          shop.rest('POST', '/token', {
            form: { grant_type: 'refresh_token', refresh_token: text },
          }),
      ],
      [401, () => shop.rest('GET', '/users/me/', { sessionKey: encodeURIComponent(text) })],
      [401, () => shop.rest('GET', '/users/me/', { token: encodeURIComponent(text) })],
      [404, () => shop.rest('GET', PRODUCT + encodeURIComponent(text))],
      [422, () => shop.rest('GET', `/api/v2/shop/products?page=${encodeURIComponent(text)}`)],
      [422, () => shop.rest('GET', `/api/users?limit=${encodeURIComponent(text)}`, { as: writer })],
      [
        200,
        () =>
          shop.rest(
            'GET',
            `/api/users?sort=${encodeURIComponent(text)}&username=${encodeURIComponent(text)}`,
            { as: writer },
          ),
      ],
      [200, () => shop.graphql(BY_PK, { pk: text })],
      [200, () => shop.graphql('query ($id: ID!) { node(id: $id) { id } }', { id: text })],
      [
        200,
        () =>
          shop.graphql('query ($after: String) { products(after: $after) { nodes { pk } } }', {
            after: text,
          }),
      ],
      [200, () => shop.graphql(SEARCH, { filter: { search: text } })],
      [200, () => shop.graphql(SEARCH, { filter: { nameContains: text } })],
    ];
    const before = await shop.sql(
      'select pk, username, hashed_password, scopes from "user" order by pk',
    );
    const { answer, statements } = await recordStatements(async () => {
      const statuses = [];
      for (const [, send] of requests) statuses.push((await send()).status);
      return statuses;
    });
    expect(answer).toEqual(requests.map(([status]) => status));
    expect(statements.length).toBeGreaterThan(0);
    expect(
      statements.filter((statement) => /kanarie|pg_sleep|extractvalue|drop table/i.test(statement)),
    ).toEqual([]);
    expect(await shop.sql('select name from product where pk = 2')).toEqual([{ name: text }]);
    expect(
      await shop.sql('select pk, username, hashed_password, scopes from "user" order by pk'),
    ).toEqual(before);
  });

  test.each(TEXTS)('R21 %s is bound as a parameter in every write', async (text) => {
    const { pk } = await shop.makeProduct();
    const { id } = (
      await shop.graphql(WRITE_ENTRY, { input: { title: 'Title', body: 'Body' } }, { as: writer })
    ).body.data.createBlogEntry;
    const as = { as: writer };
    const login = {
      json: { username: writer.username, password: PASSWORD },
      headers: { 'User-Agent': text },
    };
    const { answer, statements } = await recordStatements(async () => [
      await shop.graphql(
        'mutation ($itemId: String!) { addItem(itemId: $itemId) { itemId } }',
        { itemId: text },
        as,
      ),
      await shop.graphql(WRITE_ENTRY, { input: { title: text, body: text, published: true } }, as),
      await shop.graphql(
        'mutation ($id: ID!, $input: BlogEntryPatch!) { updateBlogEntry(id: $id, input: $input) { id } }',
        { id, input: { title: text } },
        as,
      ),
      await shop.graphql(
        'mutation ($pk: ID!, $input: ProductPatch!) { updateProduct(pk: $pk, input: $input) { pk } }',
        { pk: String(pk), input: { name: text } },
        as,
      ),
      await shop.rest('POST', '/session/login', login),
    ]);
    expect(answer.map(({ status, body }) => [status, body.errors])).toEqual(
      answer.map(() => [200, undefined]),
    );
    expect(await shop.sql('select name from product')).toEqual([{ name: text }]);
    expect(await shop.sql('select item_id from item')).toEqual([{ item_id: text }]);
    expect(await shop.sql('select title from blog_entry')).toEqual([
      { title: text },
      { title: text },
    ]);
    expect(await shop.sql('select user_agent from session')).toEqual([{ user_agent: text }]);
    expect(statements.filter((statement) => statement.includes(CANARY))).toEqual([]);
  });

  test.each(OBJECTS.map((value) => [JSON.stringify(value), value] as const))(
    'R21 %s is not a string, and reaches no statement',
    async (source, value) => {
      const good = { name: 'Pen', barcode: shop.newBarcode(), price: 1 };
      const requests: [string, object][] = [
        ...['name', 'barcode', 'price'].map((field): [string, object] => [
          PRODUCT,
          { ...good, [field]: value },
        ]),
        ...['/session/login', '/api/v2/auth/login'].flatMap((path): [string, object][] => [
          [path, { username: value, password: PASSWORD }],
          [path, { username: writer.username, password: value }],
        ]),
        ...['/session/logout', '/api/v2/auth/login'].map((path): [string, object] => [
          path,
          { session_key: value },
        ]),
      ];
      const { answer, statements } = await recordStatements(async () => {
        const statuses = [];
        for (const [path, json] of requests)
          statuses.push([path, (await shop.rest('POST', path, { as: writer, json })).status]);
        return statuses;
      });
      expect(answer).toEqual(requests.map(([path]) => [path, 422]));
      expect(
        statements.filter((statement) => statement.includes(CANARY) || statement.includes(source)),
      ).toEqual([]);
      const inGraphql = [
        await shop.graphql(CREATE, { input: { ...good, name: value } }, { as: writer }),
        await shop.graphql(SEARCH, { filter: value }),
        await shop.graphql(SEARCH, { filter: { search: value } }),
        await shop.graphql(BY_PK, { pk: value }),
      ];
      expect(inGraphql.map(({ body }) => body.errors[0].extensions.code)).toEqual(
        inGraphql.map(() => 'BAD_USER_INPUT'),
      );
      expect(await shop.sql('select * from product')).toEqual([]);
      expect(await shop.sql('select * from session')).toEqual([]);
      expect((await shop.rest('POST', PRODUCT, { as: writer, json: good })).status).toBe(201);
    },
  );

  test.each(['%', '_', '%%', 'P_n', 'P%', '\\', '\\%', '[P]', '.*', '^', 'Pen*'])(
    'R21 a search takes %s literally',
    async (text) => {
      await shop.makeProduct({ name: 'Pen' });
      for (const filter of [{ nameContains: text }, { search: text }]) {
        expect((await shop.graphql(SEARCH, { filter })).body).toEqual({
          data: { products: { nodes: [], totalCount: 0 } },
        });
      }
      await shop.makeProduct({ name: `a ${text} b` });
      expect(
        (await shop.graphql(SEARCH, { filter: { nameContains: text } })).body.data.products
          .totalCount,
      ).toBe(1);
    },
  );

  test.each([
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'then',
    'toJSON',
    'entity',
    '__helper',
    '__meta',
    '$and',
  ])('R21 a member named %s does nothing', async (member) => {
    const good = `"name":"Pen","barcode":"${shop.newBarcode()}","price":1`;
    const body = `{"${member}":{"pk":77,"name":"${CANARY}","scopes":["users:read"]},${good}}`;
    const { answer, statements } = await recordStatements(() =>
      shop.rest('POST', PRODUCT, { as: writer, body, headers: JSON_TYPE }),
    );
    expect([answer.status, answer.body.pk, answer.body.name]).toEqual([201, 1, 'Pen']);
    expect(statements.filter((statement) => statement.includes(CANARY))).toEqual([]);
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(Reflect.get({}, 'pk')).toBeUndefined();
  });
});
