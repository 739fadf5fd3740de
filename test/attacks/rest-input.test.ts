import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const KB = 1024;
const MULTIPART = 'multipart/form-data; boundary=x';
const UNREADABLE = 'The request cannot be read';

type Body = string | Uint8Array<ArrayBuffer>;

/** An endpoint that takes a body. */
interface Route {
  path: string;
  type: string;
  /** Member of the response that holds the errors. */
  key: 'detail' | 'data' | 'errors';
  /** Returns a valid body and the status of its response. */
  good: () => Promise<[body: string, status: number]>;
}

const loginBody = async () => JSON.stringify({ username: caller.username, password: PASSWORD });
const logoutBody = async () =>
  JSON.stringify({ session_key: (await sessions.open(shop.context(), caller, null)).key });
const formBody = async () =>
  new URLSearchParams({ username: caller.username, password: PASSWORD }).toString();
const productBody = async () =>
  JSON.stringify({ name: 'Pen', barcode: shop.newBarcode(), price: 1 });

const TOKEN: Route = {
  path: '/token',
  type: FORM_TYPE,
  key: 'detail',
  good: async () => [await formBody(), 200],
};
const LOGIN: Route = { ...TOKEN, path: '/login' };
const SESSION_LOGIN: Route = {
  path: '/session/login',
  type: JSON_TYPE,
  key: 'data',
  good: async () => [await loginBody(), 200],
};
const SESSION_LOGOUT: Route = {
  path: '/session/logout',
  type: JSON_TYPE,
  key: 'data',
  good: async () => [await logoutBody(), 200],
};
const V2_LOGIN: Route = { ...SESSION_LOGOUT, path: '/api/v2/auth/login' };
const PRODUCT: Route = {
  path: '/api/v1/shop/product/',
  type: JSON_TYPE,
  key: 'detail',
  good: async () => [await productBody(), 201],
};
const GRAPHQL: Route = {
  path: '/graphql',
  type: JSON_TYPE,
  key: 'errors',
  good: async () => ['{"query":"{ me { username } }"}', 200],
};
const FORM_ROUTES = [TOKEN, LOGIN];
const REST_ROUTES = [SESSION_LOGIN, SESSION_LOGOUT, V2_LOGIN, PRODUCT];
const JSON_ROUTES = [...REST_ROUTES, GRAPHQL];
const ROUTES = [...FORM_ROUTES, ...JSON_ROUTES];

const TABLES = ['product', '"user"', 'session', 'item', 'blog_entry', 'idempotency_key'];
/** Hashes, stacks, SQL, and messages of the driver, the parsers and the database. */
const INTERNALS =
  /\$2[aby]\$|\bat [^"]+:\d+:\d+|node_modules|dist\/|\b(select|insert into|update|delete from) ["\w]|syntax error|constraint|Unexpected (token|end)|SyntaxError|TypeError|RangeError|JSON at position/i;

let caller: User;
let answers: Answer[];

beforeEach(async () => {
  caller = await shop.makeUser({ scopes: ['products:write'] });
  answers = [];
});

afterEach(expectNoLeaks);

describe('R1: invalid JSON', () => {
  const BODIES: Record<string, Body> = {
    'cut after a name': '{"a":',
    'cut in a text': '{"a":"b',
    'cut in a list': '{"a":[1,2',
    'an opening brace': '{',
    'a closing brace': '}',
    'too many closing braces': '{}}',
    'a comma behind a member': '{"a":1,}',
    'a comma behind an entry': '{"a":[1,]}',
    'two commas': '{"a":1,,"b":2}',
    'a comma alone': '{,}',
    'no colon': '{"a" 1}',
    'a comment': '{/* a */"a":1}',
    'a comment to the end of the line': '{"a":1}//',
    'a comment as in a shell': '#\n{}',
    NaN: '{"a":NaN}',
    Infinity: '{"a":Infinity}',
    undefined: '{"a":undefined}',
    'True as in Python': '{"a":True}',
    'a name without quotes': '{a:1}',
    'single quotes': "{'a':1}",
    'a number with a plus': '{"a":+1}',
    'a number without its first digit': '{"a":.5}',
    'a number without its last digit': '{"a":5.}',
    'a sign alone': '{"a":-}',
    'a number in base 16': '{"a":0x10}',
    'a number without its exponent': '{"a":1e}',
    'a number with a zero before it': '{"a":01}',
    'a raw NUL': '{"a":"\0"}',
    'a raw NUL behind it': '{"a":1}\0',
    'a raw tab in a text': '{"a":"\t"}',
    'half an escape': '{"a":"\\u12"}',
    'an unknown escape': '{"a":"\\x00"}',
    'two documents': '{}\n{}',
    'a raw line break in a text': '{"name":"P\nen"}',
    'a form': 'name=alice&password=x',
    'separators of a form': '&&==',
    XML: '<name>Pen</name>',
    'a guard against scripts': ")]}',\n{}",
    'a space that JSON does not allow': '\u00a0{}',
    'a vertical tab': '\v{}',
    'a byte order mark alone': '\ufeff',
    'two byte order marks': '\ufeff\ufeff{}',
    'UTF-16': new Uint8Array(Buffer.from('\ufeff{}', 'utf16le')),
    'a byte of Latin-1': new Uint8Array(Buffer.from('{"a":"é"}', 'latin1')),
    'a NUL in two bytes': Uint8Array.of(0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d),
    'half of a surrogate pair': Uint8Array.of(0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d),
    'a truncated character': Uint8Array.of(0x7b, 0x22, 0xe2, 0x82),
    'a PNG': Uint8Array.of(0x89, 0x50, 0x4e, 0x47),
    space: ' \r\n\t',
  };

  test.each(JSON_ROUTES)('R1 invalid JSON is 400 at POST $path', async (route) => {
    expect(await answersTo(route, BODIES)).toEqual(alike(BODIES, [400, UNREADABLE]));
    expect(await goodStatus(route)).toBe(true);
  });

  test.each(JSON_ROUTES)(
    'R1 a byte order mark before valid JSON is ignored: POST $path',
    async (route) => {
      const [body, status] = await route.good();
      expect((await post(route, `\ufeff${body}`)).status).toBe(status);
    },
  );

  test.each(FORM_ROUTES)(
    'R1 invalid JSON is 422 as an incomplete form, or 400 as bytes, at POST $path',
    async (route) => {
      const missing = [422, { type: 'missing', loc: ['body', 'username'], msg: 'Field required' }];
      const isText = (body: Body) => typeof body === 'string';
      const texts = Object.fromEntries(Object.entries(BODIES).filter(([, body]) => isText(body)));
      const bytes = Object.fromEntries(Object.entries(BODIES).filter(([, body]) => !isText(body)));
      expect(firstOf(await answersTo(route, texts))).toEqual(alike(texts, missing));
      expect(await answersTo(route, bytes)).toEqual(alike(bytes, [400, UNREADABLE]));
      expect(await goodStatus(route)).toBe(true);
    },
  );

  // Reading exact numbers recurses into every level; too deep a body must not be a server error.
  test.each(JSON_ROUTES)(
    'R1 the deepest nesting that the size limit allows is rejected or served at POST $path',
    async (route) => {
      // Less the surrounding JSON.
      const limit = (route === GRAPHQL ? 100 : 16) * KB - 256;
      const lists = (innermost: string) =>
        `${'['.repeat(limit / 2)}${innermost}${']'.repeat(limit / 2)}`;
      const objects = (innermost: string) =>
        '{"a":'.repeat(limit / 6) + innermost + '}'.repeat(limit / 6);
      for (const innermost of ['0', '1e2', '12345678901234567890']) {
        for (const member of [
          'pad',
          'variables',
          'extensions',
          'name',
          'username',
          'session_key',
        ]) {
          for (const deep of [lists(innermost), objects(innermost)]) {
            const [good, status] = await route.good();
            expect([status, 400, 422]).toContain(
              (await post(route, `{"${member}":${deep},${good.slice(1)}`)).status,
            );
          }
        }
        expect([400, 422]).toContain((await post(route, lists(innermost))).status);
        expect([400, 422]).toContain(
          (await post(route, '{"a":'.repeat(limit / 5) + innermost)).status,
        );
      }
      expect(await goodStatus(route)).toBe(true);
    },
  );
});

describe('R2: a body that is not an object', () => {
  const SCALARS: Record<string, Body> = Object.fromEntries(
    ['null', '1', '"x"', 'true', 'false', '0', '-1', '""', '1e400'].map((text) => [text, text]),
  );
  const LISTS: Record<string, Body> = Object.fromEntries(
    ['[]', '[[]]', '[null]', '[{}]', '["username"]', '[{"username":"a","password":"b"}]'].map(
      (text) => [text, text],
    ),
  );

  test.each(JSON_ROUTES)('R2 null, a number or a string is 400 at POST $path', async (route) => {
    // There, null counts as no body.
    const { null: _, ...others } = SCALARS;
    const scalars = route === V2_LOGIN ? others : SCALARS;
    expect(await answersTo(route, scalars)).toEqual(alike(scalars, [400, UNREADABLE]));
    expect(await goodStatus(route)).toBe(true);
  });

  test.each(REST_ROUTES)('R2 a list is 422 at POST $path', async (route) => {
    const errors = [
      { type: 'dictionary_type', loc: ['body'], msg: 'Input should be a valid dictionary' },
    ];
    expect(await answersTo(route, LISTS)).toEqual(alike(LISTS, [422, errors]));
    expect(await goodStatus(route)).toBe(true);
  });

  test('R2 a list is 400 at POST /graphql', async () => {
    expect(statuses(await answersTo(GRAPHQL, LISTS))).toEqual(alike(LISTS, 400));
    expect(await goodStatus(GRAPHQL)).toBe(true);
  });

  // With session credentials, an empty body is a logout.
  test.each(
    ROUTES.map((route) => ({
      path: route.path,
      route,
      status: route === V2_LOGIN ? 200 : route === GRAPHQL ? 400 : 422,
    })),
  )('R2 no body is $status: POST $path', async ({ route, status }) => {
    const { key } = await sessions.open(shop.context(), caller, null);
    const { key: other } = await sessions.open(shop.context(), caller, null);
    const answer = await shop.rest('POST', route.path, {
      sessionKey: key,
      headers: { 'Content-Type': route.type },
    });
    answers.push(answer);
    expect(answer.status).toBe(status);
    // Empty chunks are no body, too.
    const chunked = await shop.raw(
      `POST ${route.path} HTTP/1.1\r\nHost: shop\r\nX-SESSION-ID: ${other}\r\nContent-Type: ${route.type}\r\n` +
        'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n',
    );
    expect(chunked).toContain(`HTTP/1.1 ${status} `);
    expect(await goodStatus(route)).toBe(true);
  });

  test.each(['{}', '{"username":null}', '{"session_key":null}', '{"query":null}', '{"query":1}'])(
    'R2 the object %s lacks required members',
    async (body) => {
      const found = Object.fromEntries(
        await Promise.all(
          JSON_ROUTES.map(async (route) => [route.path, (await post(route, body)).status]),
        ),
      );
      // An empty object means logout, which needs a session.
      const isLogout = !body.includes('username') && !body.includes('session_key');
      expect(found).toEqual({
        '/session/login': 422,
        '/session/logout': 422,
        '/api/v2/auth/login': isLogout ? 401 : 422,
        '/api/v1/shop/product/': 422,
        '/graphql': 400,
      });
    },
  );
});

describe('R3: a body of another content type', () => {
  const OTHERS = [
    '',
    'text/plain',
    'text/plain; charset=utf-8',
    'text/html',
    'text/json',
    'text/xml',
    'application/xml',
    'application/vnd.api+json',
    'application/ld+json',
    'application/problem+json',
    'application/json-patch+json',
    'application/jsonx',
    'application/javascript',
    'application/octet-stream',
    'application/graphql',
    'multipart/mixed; boundary=x',
    'json',
    '/',
    '*/*',
    'application/*',
    'application/json, text/plain',
    ...['utf-16', 'UTF-16LE', 'utf-32', 'utf-7', 'iso-8859-2', 'x-user-defined', 'utf8x'].map(
      (charset) => `application/json;charset=${charset}`,
    ),
    'application/x-www-form-urlencoded;charset=utf-7',
    'application/x-www-form-urlencoded;charset=gbk',
    'application/x-www-form-urlencoded, application/json',
    '{}',
    `a/${'b'.repeat(4_000)}`,
  ];

  test.each(ROUTES)('R3 another content type is 415 at POST $path', async (route) => {
    const [body] = await route.good();
    const before = await stored();
    const [types, others] =
      route.type === JSON_TYPE
        ? [JSON_TYPE, [...OTHERS, FORM_TYPE, MULTIPART]]
        : [`${FORM_TYPE} or multipart/form-data`, [...OTHERS, JSON_TYPE]];
    const outcome = [415, `The content type must be ${types} in UTF-8`];
    const found = await Promise.all(
      others.map(async (type) => [type, outcomeOf(route, await post(route, body, type))]),
    );
    expect(found).toEqual(others.map((type) => [type, outcome]));
    // Without Content-Type: the client adds none to bytes.
    const bare = await shop.rest('POST', route.path, {
      as: caller,
      body: new TextEncoder().encode(body),
    });
    expect(outcomeOf(route, bare)).toEqual(outcome);
    expect(await stored()).toBe(before);
    expect(await goodStatus(route)).toBe(true);
  });
});

describe('R8: a duplicate member', () => {
  test('R8 the last username and password count', async () => {
    const { username } = caller;
    const good = `"username":${JSON.stringify(username)},"password":${JSON.stringify(PASSWORD)}`;
    const bad = '"username":"nobody","password":"wrong"';
    for (const route of [SESSION_LOGIN, V2_LOGIN]) {
      expect((await post(route, `{${bad},${good}}`)).status).toBe(200);
      expect((await post(route, `{${good},${bad}}`)).status).toBe(401);
      expect((await post(route, `{${good},"\\u0075sername":"nobody"}`)).status).toBe(401);
      expect((await post(route, `{${good},"username":{"$ne":null}}`)).status).toBe(422);
    }
  });

  test('R8 the last session key counts', async () => {
    for (const route of [SESSION_LOGOUT, V2_LOGIN]) {
      const good = (await logoutBody()).slice(1, -1);
      expect((await post(route, `{${good},"session_key":"none"}`)).status).toBe(401);
      expect((await post(route, `{"session_key":null,${good}}`)).status).toBe(200);
    }
  });

  test('R8 the last document and the last variables count', async () => {
    const me = '"query":"{ me { username } }"';
    const none = '"query":"{ none }"';
    expect((await post(GRAPHQL, `{${none},${me}}`)).body).toEqual({
      data: { me: { username: caller.username } },
    });
    expect((await post(GRAPHQL, `{${me},${none}}`)).status).toBe(400);
    const byPk = '"query":"query ($pk: ID!) { product(pk: $pk) { pk } }"';
    const { pk } = await shop.makeProduct();
    const { body } = await post(
      GRAPHQL,
      `{${byPk},"variables":{"pk":"0"},"variables":{"pk":"x","pk":"${pk}"}}`,
    );
    expect(body).toEqual({ data: { product: { pk: String(pk) } } });
  });

  test('R8 a product is stored as it was validated', async () => {
    const [good, bad] = [
      '"name":"Pen","barcode":"4006381333931","price":2',
      '"name":"","barcode":"1","price":-1',
    ];
    expect((await post(PRODUCT, `{${good},${bad}}`)).status).toBe(422);
    expect((await post(PRODUCT, `{${good},"na\\u006de":""}`)).status).toBe(422);
    expect((await post(PRODUCT, `{${bad},"na\\u006de":"First",${good}}`)).body).toEqual({
      pk: 1,
      name: 'Pen',
      barcode: '4006381333931',
      price: 2,
    });
    expect(await shop.sql('select name, barcode, price::text from product')).toEqual([
      { name: 'Pen', barcode: '4006381333931', price: '2.00' },
    ]);
  });
});

describe('R10: unknown members', () => {
  const EXTRA = {
    pk: 1,
    id: 'UHJvZHVjdDox',
    createdAt: '2001-01-01T00:00:00Z',
    created_at: '2001-01-01T00:00:00Z',
    nameKey: 'x',
    name_key: 'x',
    $set: { price: 0 },
    hashed_password: 'x',
    hashedPassword: 'x',
    disabled: true,
    scopes: ['users:read'],
    sid: 'x',
    user_pk: 999,
    userPk: 999,
    expires_at: 'x',
  };

  test.each(JSON_ROUTES)('R10 unknown members change nothing at POST $path', async (route) => {
    const taken = await shop.makeProduct({ name: 'First' });
    const [body, status] = await route.good();
    const answer = await post(route, JSON.stringify({ ...EXTRA, ...(JSON.parse(body) as object) }));
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain('hashed');
    expect([undefined, taken.pk + 1]).toContain(answer.body.pk);
    const year = shop.now().getUTCFullYear();
    const added = { name: 'Pen', price: '1.00', name_key: 'pen', year };
    expect(
      await shop.sql(
        'select name, price::text, name_key, extract(year from created_at)::int as year from product order by pk',
      ),
    ).toEqual([
      { name: 'First', price: '9.99', name_key: 'first', year },
      ...(route === PRODUCT ? [added] : []),
    ]);
    expect(
      await shop.sql(
        'select disabled, scopes, hashed_password is not null as has_hash from "user"',
      ),
    ).toEqual([{ disabled: false, scopes: ['products:write'], has_hash: true }]);
    expect(
      await shop.sql(`select * from session where scopes is not null or user_pk <> ${caller.pk}`),
    ).toEqual([]);
  });

  test.each(FORM_ROUTES)('R10 unknown members change nothing at POST $path', async (route) => {
    const { status } = await post(
      route,
      `${await formBody()}&disabled=true&pk=1&hashed_password=x&sid=x&scopes=users:read`,
    );
    expect(status).toBe(200);
    expect(await shop.sql('select disabled, scopes from "user"')).toEqual([
      { disabled: false, scopes: ['products:write'] },
    ]);
    expect(await shop.sql('select * from session where scopes is not null')).toEqual([]);
  });
});

async function post(route: Route, body: Body, type: string = route.type): Promise<Answer> {
  const answer = await shop.rest('POST', route.path, {
    as: caller,
    body,
    headers: { 'Content-Type': type },
  });
  answers.push(answer);
  return answer;
}

/** Returns the status and error of each body; checks that none is stored. */
async function answersTo(
  route: Route,
  bodies: Record<string, Body>,
): Promise<Record<string, unknown>> {
  const before = await stored();
  const found: Record<string, unknown> = {};
  for (const [what, body] of Object.entries(bodies)) {
    const answer = await post(route, body);
    const { errors } = answer.body;
    found[what] = outcomeOf(route, answer);
    expect(errors === undefined || errors[0].extensions.code).toBeTruthy();
  }
  expect(await stored()).toBe(before);
  return found;
}

/** Returns the status and the error. Errors of fields are always in `detail`. */
function outcomeOf({ key }: Route, { status, body }: Answer): [status: number, error: unknown] {
  const error = body[status === 422 ? 'detail' : key];
  return [status, key === 'errors' ? error[0].message : error];
}

function alike(bodies: Record<string, Body>, outcome: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.keys(bodies).map((what) => [what, outcome]));
}

function statuses(found: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(found).map(([what, outcome]) => [what, (outcome as unknown[])[0]]),
  );
}

/** Returns the first error of each list. */
function firstOf(found: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(found).map(([what, outcome]) => [
      what,
      (outcome as unknown[]).flat().slice(0, 2),
    ]),
  );
}

/** Returns true if a valid request gets the expected status. */
async function goodStatus(route: Route): Promise<boolean> {
  const [body, status] = await route.good();
  return (await post(route, body)).status === status;
}

async function stored(): Promise<string> {
  return JSON.stringify(
    await shop.sql(
      `select ${TABLES.map((table) => `(select count(*) from ${table})`).join(' || $$ $$ || ')} as rows`,
    ),
  );
}

/** Checks that every response is JSON without server errors, and that nothing reveals internals. */
async function expectNoLeaks(): Promise<void> {
  for (const { status, headers, text } of answers) {
    expect(status).toBeLessThan(500);
    expect(headers.get('content-type')).toMatch(
      /^application\/(json|graphql-response\+json); charset=utf-8$/,
    );
    expect(text).not.toMatch(INTERNALS);
  }
  expect(shop.logged.filter((line) => INTERNALS.test(line) || line.includes(PASSWORD))).toEqual([]);
}
