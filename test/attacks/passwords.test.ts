import { describe, expect, test } from '../support/jest.ts';
import { observeHashing } from '../support/hashes.ts';
import { LOGIN_ENDPOINTS } from '../support/logins.ts';
import { LOWEST_COST, PASSWORD, useShop, type Answer } from '../support/shop.ts';

// Values in place of a name or a password. Only strings reach a statement or a hash, and every
// string is taken unchanged.

const shop = useShop();
const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey } }';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

type Login = (username: string, password: string) => Promise<Answer>;
type Body = (username: unknown, password: unknown) => Promise<Answer>;

const json =
  (path: string): Body =>
  (username, password) =>
    shop.rest('POST', path, { json: { username, password } });
const graphql: Body = (username, password) => shop.graphql(LOGIN, { username, password });

const ENDPOINTS: [string, Login][] = LOGIN_ENDPOINTS.map(([name, enter]) => [
  name,
  (username, password) => enter(shop, username, password),
]);
const FORMS = ['/token', '/login'];
const BODIES: [string, Body][] = [
  ['POST /session/login', json('/session/login')],
  ['POST /api/v2/auth/login', json('/api/v2/auth/login')],
  ['login of GraphQL', graphql],
];
const NOT_STRINGS: unknown[] = [
  null,
  // An object with a length can be mistaken for a string.
  { length: { toString: null } },
  0,
  1,
  -1,
  1.5,
  1e300,
  true,
  false,
  [],
  ['alice'],
  [[]],
  {},
  { $ne: '' },
  { $gt: '' },
  { $regex: '.*' },
  { length: 8 },
  { toString: 'x' },
];

const isRejection = ({ text }: Answer): boolean =>
  /Incorrect (username or|login and\/or) password/.test(text);
const isLogin = ({ status, text }: Answer): boolean => status === 200 && !text.includes('"errors"');

/** Returns true if the input was rejected: 422 by REST, BAD_USER_INPUT by GraphQL. */
function isBadInput({ status, body }: Answer): boolean {
  return body?.errors === undefined
    ? status === 422
    : body.errors[0].extensions.code === 'BAD_USER_INPUT';
}

describe('W1 to W2: length and characters of passwords', () => {
  test.each(ENDPOINTS)(
    'W1 more than 72 bytes are hashed like any other wrong password: %s',
    async (_name, enter) => {
      const password = 'x'.repeat(72);
      const user = await shop.makeUser({ password });
      for (const longer of [
        `${password}x`,
        `${password}\0`,
        `${password} `,
        password.repeat(10),
        `${'é'.repeat(36)}x`,
      ]) {
        const { answer, work } = await observeHashing(() => enter(user.username, longer));
        expect([isRejection(answer), work]).toEqual([true, 2 ** LOWEST_COST]);
      }
      expect(isLogin(await enter(user.username, password))).toBe(true);
      expect(isRejection(await enter(user.username, password.slice(1)))).toBe(true);
    },
  );

  test.each([
    ['73 letters', 'x'.repeat(73)],
    ['36 letters of two bytes and one of one', `${'é'.repeat(36)}x`],
    ['18 emoji and a letter', `${'🐘'.repeat(18)}x`],
    ['71 letters and one of two bytes', `${'x'.repeat(71)}é`],
    ['10,000 letters', 'x'.repeat(10_000)],
    ['73 spaces', ' '.repeat(73)],
  ])('W1 %s are more than 72 bytes and cannot be set', async (_what, next) => {
    const user = await shop.makeUser();
    const { answer, work } = await observeHashing(() =>
      shop.graphql(CHANGE, { current: PASSWORD, new: next }, { as: user }),
    );
    expect([answer.status, answer.body.data, work]).toEqual([200, null, 0]);
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'new', message: 'A password must have at most 72 bytes' }],
    });
    expect(isLogin(await graphql(user.username, PASSWORD))).toBe(true);
  });

  test.each<[string, string, string[]]>([
    ['64 ASCII characters', 'Az 09~!@'.repeat(8), ['az 09~!@'.repeat(8), 'Az 09~!@'.repeat(7)]],
    ['18 emoji', '🐘'.repeat(18), ['🐘'.repeat(17), '🐘'.repeat(17) + '🐙']],
    [
      'spaces at its ends and inside',
      '  a  pass  word  ',
      ['a  pass  word', 'a  pass  word  ', '  a pass word  ', '  a  pass  word '],
    ],
    [
      'characters that forms and queries encode',
      '100%+&=?#/:;,"\\',
      ['100% &=?#/:;,"\\', '100%25+&=?#/:;,"\\'],
    ],
    ['colons', 'a:b:c:d:e', ['a', 'a:b:c:d', 'b:c:d:e']],
    ['a composed letter', 'caf\u00e9 cr\u00e8me', ['cafe\u0301 cr\u00e8me', 'cafe creme']],
    ['wide letters', 'ｐａｓｓｗｏｒｄ', ['password']],
    ['a long s and a Kelvin sign', 'mi\u017f\u017fing \u212a', ['missing K', 'MISSING K']],
    ['markup', '<script>&amp;', ['<script>&', '&lt;script&gt;&amp;']],
    ['only spaces', ' '.repeat(8), ['', ' '.repeat(7), ' '.repeat(9)]],
    ['a NUL at its start', '\0eight characters', ['\0', '', '\0other']],
    ['a line break', 'one line\r\nanother', ['one line\nanother', 'one line']],
    ['a hash', `$2b$10$${'C'.repeat(53)}`, ['']],
  ])('W2 %s: set and accepted unchanged at every endpoint', async (_what, password, others) => {
    const user = await shop.makeUser();
    expect(
      (await shop.graphql(CHANGE, { current: PASSWORD, new: password }, { as: user })).body.errors,
    ).toBeUndefined();
    expect(
      await Promise.all(
        ENDPOINTS.map(async ([name, enter]) => [
          name,
          isLogin(await enter(user.username, password)),
        ]),
      ),
    ).toEqual(ENDPOINTS.map(([name]) => [name, true]));
    for (const other of others) {
      const answers = await Promise.all(
        ENDPOINTS.map(async ([name, enter]) => [
          name,
          isRejection(await enter(user.username, other)),
        ]),
      );
      expect(answers).toEqual(ENDPOINTS.map(([name]) => [name, true]));
    }
    expect(
      (await shop.graphql(CHANGE, { current: password, new: PASSWORD }, { as: user })).body.errors,
    ).toBeUndefined();
  });

  test.each(ENDPOINTS)('W2 a NUL does not end a password: %s', async (_name, enter) => {
    const { username } = await shop.makeUser({ password: 'before\0after' });
    expect(isLogin(await enter(username, 'before\0after'))).toBe(true);
    for (const other of ['before', 'before\0', 'before\0other', 'beforeafter'])
      expect(isRejection(await enter(username, other))).toBe(true);
  });

  test.each(['\ud800', '\udc00'])(
    'W2 a lone surrogate (%j) does not match another one',
    async (half) => {
      const user = await shop.makeUser();
      const { body } = await shop.graphql(
        CHANGE,
        { current: PASSWORD, new: half.repeat(8) },
        { as: user },
      );
      const wasSet = body.errors === undefined;
      const others = ['\udbff', '\udfff', '\ufffd'].map((other) =>
        json('/session/login')(user.username, other.repeat(8)),
      );
      expect((await Promise.all(others)).map(isLogin)).toEqual([false, false, false]);
      expect(
        isLogin(await json('/session/login')(user.username, wasSet ? half.repeat(8) : PASSWORD)),
      ).toBe(true);
    },
  );
});

describe('W4 to W6: values in place of strings', () => {
  test.each(BODIES)(
    'W4 a password that is not a string is rejected before hashing: %s',
    async (_name, enter) => {
      const { username } = await shop.makeUser();
      for (const password of [undefined, ...NOT_STRINGS]) {
        const { answer, statements, work } = await observeHashing(() => enter(username, password));
        expect([password, isBadInput(answer), statements, work]).toEqual([password, true, [], 0]);
      }
      expect(isLogin(await enter(username, PASSWORD))).toBe(true);
    },
  );

  test.each(FORMS)(
    'W4 a form without a password, or with several, is rejected before hashing: POST %s',
    async (path) => {
      const { username } = await shop.makeUser();
      const fields = {
        '': 'missing',
        '&password=a&password=b': 'string_type',
        '&password[]=a': 'missing',
        '&password[$ne]=': 'missing',
        '&Password=a': 'missing',
        '&password%00=a': 'missing',
        '&pass%20word=a': 'missing',
      };
      for (const [field, type] of Object.entries(fields)) {
        const { answer, statements, work } = await observeHashing(() =>
          formOf(path, `username=${username}${field}`),
        );
        expect([field, answer.status, statements, work]).toEqual([field, 422, [], 0]);
        expect(answer.body.detail).toMatchObject([{ type, loc: ['body', 'password'] }]);
      }
    },
  );

  test.each(ENDPOINTS)(
    'W4 an empty password is hashed like any other wrong one: %s',
    async (_name, enter) => {
      const { username } = await shop.makeUser();
      const { answer, work } = await observeHashing(() => enter(username, ''));
      expect([isRejection(answer), work]).toEqual([true, 2 ** LOWEST_COST]);
    },
  );

  test.each<[string, Login, number]>(
    ENDPOINTS.map(([name, enter]) => [name, enter, /GET/.test(name) ? 431 : 413]),
  )('W4 a megabyte of password is too large: %s', async (_name, enter, status) => {
    const { username } = await shop.makeUser();
    const { answer, statements, work } = await observeHashing(() =>
      enter(username, 'x'.repeat(1_048_576)),
    );
    expect([answer.status, statements, work]).toEqual([status, [], 0]);
    expect(isLogin(await enter(username, PASSWORD))).toBe(true);
  });

  test('W4 special names of JavaScript are plain field names', async () => {
    const { username } = await shop.makeUser();
    for (const path of ['/session/login', '/api/v2/auth/login']) {
      const rest = `"username":"${username}"`;
      for (const text of [
        `{"__proto__":{"password":"${PASSWORD}"},${rest}}`,
        `{"constructor":{"password":"${PASSWORD}"},${rest}}`,
      ]) {
        expect((await jsonText(path, text)).status).toBe(422);
      }
      expect(
        (await jsonText(path, `{${rest},"password":"${PASSWORD}","__proto__":{"disabled":false}}`))
          .status,
      ).toBe(200);
      expect(
        (await jsonText(path, `{${rest},"password":${'['.repeat(7_000)}${']'.repeat(7_000)}}`))
          .status,
      ).toBe(422);
      expect(
        (await jsonText(path, `{${rest},"password":"a","password":"${PASSWORD}"}`)).status,
      ).toBe(200);
      expect((await jsonText(path, `{${rest},"password":1e400}`)).status).toBe(422);
    }
    const both = JSON.stringify({ username, password: PASSWORD });
    expect((await jsonText('/session/login', `{"__proto__":${both}}`)).body.detail).toMatchObject([
      { type: 'missing', loc: ['body', 'username'] },
      { type: 'missing', loc: ['body', 'password'] },
    ]);
  });

  test.each([
    ['Basic Og==', 422],
    ['Basic', 401],
    ['Basic =', 401],
    ['Basic !!!!', 401],
    ['Basic YWxpY2U6YQ==, Basic YWxpY2U6YQ==', 401],
    [`Basic ${Buffer.from('a\0b:c').toString('base64')}`, 422],
  ])('W4 %j holds no usable credentials: %i, without hashing', async (Authorization, status) => {
    const { answer, statements, work } = await observeHashing(() =>
      shop.rest('GET', '/api/v2/auth/login', { headers: { Authorization } }),
    );
    expect([answer.status, statements, work]).toEqual([status, [], 0]);
  });

  test.each(BODIES)(
    'W5 a name that is not a string, is empty, or cannot be stored is rejected before any statement: %s',
    async (_name, enter) => {
      for (const username of [
        ...NOT_STRINGS,
        '',
        '\0',
        'ali\0ce',
        'alice\0',
        '\ud800',
        'ali\udc00ce',
        'ali\udc00\ud800ce',
      ]) {
        const { answer, statements, work } = await observeHashing(() => enter(username, PASSWORD));
        expect([username, isBadInput(answer), statements, work]).toEqual([username, true, [], 0]);
      }
    },
  );

  test.each(ENDPOINTS)('W5 any other name is unknown: %s', async (_name, enter) => {
    await shop.makeUser({ username: 'alice' });
    const names = [
      'alic e',
      '\u202eecila',
      'al\u0456ce',
      'al\u0131ce',
      'alic\u00e9',
      '__proto__',
      "alice'--",
      '%',
      'al\nice',
      'alic_',
    ];
    for (const name of [...names, 'a'.repeat(3_000)]) {
      const { answer, work } = await observeHashing(() => enter(name, PASSWORD));
      expect([name, isRejection(answer), work]).toEqual([name, true, 2 ** LOWEST_COST]);
    }
    expect(isLogin(await enter('alice', PASSWORD))).toBe(true);
  });

  // A form has 4 KB (decisions, "Malformed body"), so a name of 10 KB is too large there.
  test.each<[string, Login, boolean]>(
    ENDPOINTS.map(([name, enter]) => [name, enter, !FORMS.includes(name.replace('POST ', ''))]),
  )('W5 a name of 10 KB is unknown, or too large: %s', async (_name, enter, fits) => {
    const answer = await enter('a'.repeat(10_240), PASSWORD);
    expect([isRejection(answer), answer.status === 413]).toEqual([fits, !fits]);
  });

  test.each(FORMS)(
    'W6 a form with two usernames, or with a condition, is rejected before any statement: POST %s',
    async (path) => {
      await shop.makeUser({ username: 'a' });
      const password = new URLSearchParams({ password: PASSWORD }).toString();
      const fields = {
        'username=a&username=b': 'string_type',
        'username=a&username=a': 'string_type',
        'username[$ne]=x': 'missing',
        'username[]=a': 'missing',
        'username[0]=a': 'missing',
        'username.$ne=x': 'missing',
        'username%5B%24gt%5D=': 'missing',
        'Username=a': 'missing',
        'username.name=a': 'missing',
        '__proto__=a': 'missing',
        '__proto__[username]=a': 'missing',
        'constructor[prototype][username]=a': 'missing',
      };
      for (const [field, type] of Object.entries(fields)) {
        const { answer, statements, work } = await observeHashing(() =>
          formOf(path, `${field}&${password}`),
        );
        expect([field, answer.status, statements, work]).toEqual([field, 422, [], 0]);
        expect(answer.body.detail).toMatchObject([{ type, loc: ['body', 'username'] }]);
      }
      expect(Object.keys(Object.prototype)).toEqual([]);
      // Such a field is ignored beside a username.
      expect(isLogin(await formOf(path, `username=a&username[$ne]=x&${password}`))).toBe(true);
      const { status, body } = await formOf(path, `username=a&${password}&scope=a&scope=b`);
      expect([status, body.detail]).toEqual([
        422,
        [{ type: 'string_type', loc: ['body', 'scope'], msg: 'Parameter given twice' }],
      ]);
    },
  );

  test('W6 so is a query', async () => {
    await shop.makeUser({ username: 'a' });
    const password = new URLSearchParams({ password: PASSWORD }).toString();
    for (const [field, type, name = 'username'] of [
      ['username=a&username=b', 'string_type'],
      ['username[$ne]=x', 'missing'],
      ['username[]=a', 'missing'],
      ['username=a&password=x', 'string_type', 'password'],
      ['__proto__[username]=a&__proto__=b', 'missing'],
    ]) {
      const { answer, statements, work } = await observeHashing(() =>
        shop.rest('GET', `/api/v2/auth/login?${field}&${password}`),
      );
      expect([field, answer.status, statements, work]).toEqual([field, 422, [], 0]);
      expect(answer.body.detail).toMatchObject([{ type, loc: ['query', name] }]);
    }
  });
});

const formOf = (path: string, body: string): Promise<Answer> =>
  shop.rest('POST', path, { body, headers: { 'Content-Type': FORM } });
const jsonText = (path: string, body: string): Promise<Answer> =>
  shop.rest('POST', path, { body, headers: { 'Content-Type': JSON_TYPE } });

describe('W7 to W8: other fields and content types', () => {
  const EXTRAS = [
    '',
    'grant_type=password',
    'grant_type=',
    'client_id=x&client_secret=y',
    'scope=',
    'scope=products:write',
    'scope=nothing+that+there+is',
    'unknown=1&other[]=2',
    'grant_type=password&scope=&client_id=&client_secret=',
  ];
  test.each(FORMS.flatMap((path) => EXTRAS.map((extra) => [path, extra])))(
    'W7 POST %s accepts %j beside name and password',
    async (path, extra) => {
      const { username } = await shop.makeUser();
      const answer = await formOf(
        path,
        `${new URLSearchParams({ username, password: PASSWORD }).toString()}&${extra}`,
      );
      expect([answer.status, answer.body]).toEqual([
        200,
        { access_token: expect.any(String), token_type: 'bearer' },
      ]);
    },
  );

  const GRANTS = [
    'x',
    'client_credentials',
    'authorization_code',
    'PASSWORD',
    'password ',
    'urn:ietf:params:oauth:grant-type:jwt-bearer',
  ];
  test.each(FORMS.flatMap((path) => GRANTS.map((grant) => [path, grant])))(
    'W7 POST %s rejects the grant type %j',
    async (path, grant) => {
      const { username } = await shop.makeUser();
      const form = { username, password: PASSWORD, grant_type: grant };
      const { answer, statements, work } = await observeHashing(() =>
        shop.rest('POST', path, { form }),
      );
      expect([answer.status, answer.body.detail[0].loc, statements, work]).toEqual([
        422,
        ['body', 'grant_type'],
        [],
        0,
      ]);
    },
  );

  test('W7 a requested scope narrows the scopes of the user, and never adds to them', async () => {
    const user = await shop.makeUser({ scopes: ['blog:write'] });
    const form = {
      username: user.username,
      password: PASSWORD,
      scope: 'products:write  users:read admin * blog:write',
    };
    const { body } = await shop.rest('POST', '/token', { form });
    const made = { name: 'Not to be', barcode: shop.newBarcode(), price: 1 };
    expect(
      (
        await shop.rest('POST', '/api/v1/shop/product/', {
          token: String(body.access_token),
          json: made,
        })
      ).status,
    ).toBe(403);
    const [claims = ''] = String(body.access_token).split('.').slice(1);
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      scopes: ['blog:write'],
    });
  });

  const TYPES = [
    JSON_TYPE,
    'text/plain',
    'multipart/mixed; boundary=x',
    'application/xml',
    `${FORM}; charset=utf-16`,
    `${FORM}; charset=iso-8859-2`,
    `${JSON_TYPE}; charset=utf-7`,
    `${FORM}, ${JSON_TYPE}`,
    '',
  ];
  type Wrong = [path: string, body: string, error: object, types: string[]];
  const wrong = [
    ...FORMS.map((path): Wrong => [
      path,
      'username=alice&password=x',
      { detail: `The content type must be ${FORM} or multipart/form-data in UTF-8` },
      TYPES,
    ]),
    ...['/session/login', '/api/v2/auth/login'].map((path): Wrong => [
      path,
      '{"username":"alice","password":"x"}',
      { data: `The content type must be ${JSON_TYPE} in UTF-8` },
      [FORM, ...TYPES.slice(1)],
    ]),
  ];
  test.each(wrong)(
    'W8 POST %s rejects other content types and charsets',
    async (path, body, error, types) => {
      for (const type of types) {
        // fetch adds no Content-Type to a body of bytes.
        const bytes = new TextEncoder().encode(body);
        const headers = type === '' ? {} : { 'Content-Type': type };
        const { answer, statements, work } = await observeHashing(() =>
          shop.rest('POST', path, { body: bytes, headers }),
        );
        expect([type, answer.status, statements, work]).toEqual([type, 415, [], 0]);
        expect(answer.body).toEqual(error);
      }
    },
  );

  test('W8 so does GraphQL', async () => {
    const body = JSON.stringify({ query: LOGIN, variables: { username: 'alice', password: 'x' } });
    for (const type of [
      FORM,
      'text/plain',
      'multipart/form-data; boundary=x',
      'application/graphql',
    ]) {
      const { answer, statements, work } = await observeHashing(() =>
        shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': type } }),
      );
      expect([type, [400, 415].includes(answer.status), statements, work]).toEqual([
        type,
        true,
        [],
        0,
      ]);
    }
  });

  test.each(FORMS)('W8 POST %s accepts a form in UTF-8', async (path) => {
    const { username } = await shop.makeUser();
    const body = new URLSearchParams({ username, password: PASSWORD }).toString();
    const headers = { 'Content-Type': `${FORM}; charset=UTF-8` };
    expect((await shop.rest('POST', path, { body, headers })).status).toBe(200);
  });
});
