import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Deployment, type Given } from '../../contract/deployment.ts';
import { sections } from '../../contract/promises/index.ts';
import { asJson, asText } from '../../contract/report.ts';
import { run, type Result } from '../../contract/run.ts';
import { everythingAbout, stock } from '../support/contract.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { Shop } from '../support/shop.ts';
import { spoiled, type Passing } from '../support/spoiler.ts';

/** What is wrong with a deployment, the sections that are looked at, and the promises that this breaks, and no others. */
interface Fault {
  fault: string;
  spoil: (passing: Passing) => unknown;
  only: readonly string[];
  broken: readonly string[];
}

interface Page {
  items: unknown[];
}

const PATHS = [
  'api-users',
  'api-v1-shop-product-new',
  'api-v1-shop-product-pk',
  'api-v1-shop-products',
  'api-v2-auth-login',
  'api-v2-shop-products',
  'blog',
  'login',
  'session-login',
  'session-logout',
  'token',
  'users-me',
  'users-me-items',
];
const ALL = sections.map(({ number }) => number);

const FAULTS: readonly Fault[] = [
  {
    fault: 'leaves WWW-Authenticate out',
    spoil: ({ headers }) => delete headers['www-authenticate'],
    only: ['7'],
    broken: ['7:bad-token', '7:wrong-credentials'],
  },
  {
    fault: 'calls detail message',
    spoil: rename('detail', 'message'),
    only: ['4.1'],
    broken: [
      '4.1:blog-anonymous',
      '4.1:login-disabled',
      '4.1:login-get',
      '4.1:login-get-405',
      '4.1:login-wrong',
      '4.1:login-wrong-as-token',
      '4.1:token-disabled',
      '4.1:token-oauth-error',
      '4.1:token-wrong',
    ],
  },
  {
    fault: 'calls data detail',
    spoil: rename('data', 'detail'),
    only: ['4.2'],
    broken: [
      '4.2:login-disabled',
      '4.2:login-wrong',
      '4.2:login-wrong-text',
      '4.2:logout',
      '4.2:logout-ends',
      '4.2:logout-text',
      '4.2:logout-unknown',
      '4.2:logout-unknown-text',
      '4.2:v2-get-challenge',
      '4.2:v2-get-query',
      '4.2:v2-post-login-wrong',
    ],
  },
  {
    fault: 'leaves Access-Control-Allow-Origin out of OPTIONS',
    spoil: ({ method, headers }) => method === 'OPTIONS' && delete headers['access-control-allow-origin'],
    only: ['4.5'],
    broken: PATHS.map((path) => `4.5:options-${path}`),
  },
  {
    fault: 'joins the allowed methods without a space',
    spoil: ({ path, headers }) => {
      if (path.startsWith('/token')) headers['access-control-allow-methods'] = 'POST,OPTIONS';
    },
    only: ['4.5'],
    broken: ['4.5:options-exact-token', '4.5:options-token'],
  },
  {
    fault: 'answers OPTIONS with 204',
    spoil: (passing) => {
      if (passing.method === 'OPTIONS' && passing.path.startsWith('/api/users')) passing.status = 204;
    },
    only: ['4.5'],
    broken: ['4.5:options-api-users', '4.5:slash-api-users'],
  },
  {
    fault: 'has eleven products on a page',
    spoil: inJson(/^\/api\/v2\/shop\/products\?page=1$/, (body: Page) => ({ ...body, items: [...body.items, body.items[0]] })),
    only: ['8', '9'],
    broken: ['8:page-size-products', '9:v2-pages'],
  },
  {
    fault: 'gives fifty entries where no limit is asked for',
    spoil: inJson(/\?offset=0$/, (body: Page) => ({ ...body, items: body.items.slice(0, 50) })),
    only: ['8'],
    broken: ['8:default-limit-products', '8:default-limit-users'],
  },
  {
    fault: 'turns a part of a list around',
    spoil: inJson(/^\/api\/users\?limit=2&offset=1$/, (body: Page) => ({ ...body, items: body.items.toReversed() })),
    only: ['4.4', '8'],
    broken: ['8:limit-users'],
  },
  {
    fault: 'returns the hash of the password',
    spoil: inJson(/^\/users\/me\/$/, (body: object) => ({ ...body, hashed_password: `$2b$10$${'a'.repeat(53)}` })),
    only: ['2'],
    broken: ['2:no-hash-users-me', '2:user-exact'],
  },
  {
    fault: 'has a barcode of another format',
    spoil: (passing) => (passing.body = passing.body.replace(/"barcode":"(\d{13})"/, '"barcode":"$1x"')),
    only: ['2'],
    broken: ['2:barcode-v1', '2:barcode-v2'],
  },
  {
    fault: 'writes prices as text',
    spoil: (passing) => (passing.body = passing.body.replace(/"price":([\d.]+)/g, '"price":"$1"')),
    only: ['2'],
    broken: ['2:product-exact-detail', '2:product-exact-v1', '2:product-exact-v2'],
  },
  {
    fault: 'answers a bad token with 403',
    spoil: (passing) => {
      if (passing.body.includes('Could not validate')) passing.status = 403;
    },
    only: ['5.1'],
    broken: [
      '5.1:alg-none',
      '5.1:default-lifetime',
      '5.1:longer-life',
      '5.1:no-signature',
      '5.1:no-sub',
      '5.1:other-claims',
      '5.1:other-signature',
      '5.1:refusal-text',
      '5.1:undecodable-blog',
      '5.1:undecodable-users-me',
      '5.1:undecodable-users-me-items',
      '5.1:unknown-sub',
    ],
  },
  {
    fault: 'takes a token that names another audience',
    spoil: (passing) => {
      const [, payload = ''] = (passing.asked.authorization ?? '').split('.');
      if (Buffer.from(payload, 'base64url').includes('another-audience')) passing.status = 200;
    },
    only: ['5.2'],
    broken: ['5.2:aud', '5.2:aud-list'],
  },
  {
    fault: 'answers a disabled user with 401',
    spoil: (passing) => {
      if (passing.body.includes('Inactive user')) passing.status = 401;
    },
    only: ['4.1', '5.1', '7'],
    broken: ['4.1:login-disabled', '4.1:token-disabled', '5.1:disabled', '5.1:disabled-text', '7:disabled'],
  },
  {
    fault: 'takes any session key',
    spoil: (passing) => {
      if (passing.path === '/users/me/' && passing.asked['x-session-id'] !== undefined) passing.status = 200;
    },
    only: ['5.3'],
    broken: ['5.3:authorization-decides', '5.3:ended', '5.3:two-keys', '5.3:unknown'],
  },
  {
    fault: 'logs out with the wrong words',
    spoil: (passing) => (passing.body = passing.body.replaceAll('Logout successful', 'Bye')),
    only: ['4.2'],
    broken: [
      '4.2:logout',
      '4.2:logout-text',
      '4.2:v2-post-body',
      '4.2:v2-post-logout',
      '4.2:v2-post-token',
      '4.2:v2-post-x-session-id',
      '4.2:v2-post-x-sessionid',
    ],
  },
  {
    fault: 'answers 200 where a product is created',
    spoil: (passing) => {
      if (passing.status === 201) passing.status = 200;
    },
    only: ['4.3'],
    broken: ['4.3:create-201', '4.3:create-decimal-text', '4.3:create-trims'],
  },
  {
    fault: 'paginates the first version',
    spoil: inJson(/^\/api\/v1\/shop\/products/, (body: unknown[]) => body.slice(0, 10)),
    only: ['9'],
    broken: ['9:v1-whole'],
  },
  {
    fault: 'tells a wrong password from an unknown username',
    spoil: (passing) => {
      if (/(alice|zoe).*wrong/.test(passing.sent)) passing.body = passing.body.replace('username or password', 'password');
    },
    only: ['4.1'],
    broken: ['4.1:login-disabled-wrong', '4.1:login-wrong-as-unknown', '4.1:token-disabled-wrong', '4.1:token-wrong-as-unknown'],
  },
  {
    fault: 'makes links of what the client calls it',
    spoil: ({ asked, ...passing }) => {
      passing.headers['link'] = `<http://${String(asked['x-forwarded-host'] ?? asked.host)}/>; rel="next"`;
    },
    only: ['4.3'],
    broken: ['4.3:v2-forged-host', '4.3:v2-links'],
  },
  {
    fault: 'gives all tokens one jti',
    spoil: inToken((claims) => ({ ...claims, jti: 'one' })),
    only: ['5.2'],
    broken: ['5.2:jti'],
  },
  {
    fault: 'writes claims of the wrong kind',
    spoil: inToken((claims) => ({ ...claims, iat: String(claims['iat']) })),
    only: ['5.2'],
    broken: ['5.2:types'],
  },
  {
    fault: 'lets tokens live for an hour',
    spoil: (passing) => {
      if (passing.path === '/login') inToken((claims) => ({ ...claims, exp: Number(claims['iat']) + 3600 }))(passing);
    },
    only: ['8'],
    broken: ['8:token-lifetime-login'],
  },
  {
    fault: 'cuts the connection',
    spoil: (passing) => {
      if (passing.path === '/blog') passing.status = 0;
    },
    only: ['4.1'],
    broken: ['4.1:blog', '4.1:blog-anonymous', '4.1:blog-drafts'],
  },
];

const shop = new Shop();

beforeAll(async () => {
  await shop.start();
  await stock(shop);
});
afterAll(() => shop.stop());

describe('a deployment that', () => {
  test.each(FAULTS)('$fault is found out', async ({ spoil, only, broken }) => {
    const results = await resultsOf(spoil, only);
    expect(idsOf(results, 'broken')).toEqual(broken);
  });
});

test('what a deployment echoes of passwords, tokens, keys and the secret is not printed', async () => {
  const echo = (passing: Passing): void => {
    const { asked, sent, body } = passing;
    passing.status = 418;
    passing.body = JSON.stringify({ authorization: asked.authorization, key: asked['x-session-id'], sent, body, secret: TEST_SECRET });
  };
  // The logins give what the others could show.
  const results = await resultsOf((passing) => (isLogin(passing) ? undefined : echo(passing)), ALL);
  const around = { baseUrl: 'http://shop.example', isStrict: true, logins: { opened: 0, left: 0 }, created: [] };
  expect(idsOf(results, 'broken').length).toBeGreaterThan(100);
  for (const report of [asJson(results, around), asText(sections, results, around, false)]) {
    expect(report).toContain('<hidden>');
    for (const secret of ['alice-demo-1', 'zoe-demo-1', TEST_SECRET]) expect(report).not.toContain(secret);
    expect(report).not.toMatch(/eyJ[\w-]{8}/);
    expect(report).not.toMatch(/(?<![\w-])[\w-]{43}(?![\w-])/);
  }
});

test.each([
  'hello',
  'null',
  '[]',
  '{}',
  '[{a}',
  '[[[',
  '{"items":[1,null]}',
  '{"access_token":1,"session_key":{}}',
  '{"access_token":"a.b.c"}',
])('what is no shop at all, but answers %j to everything, keeps next to nothing', async (body) => {
  const results = await resultsOf((passing) => Object.assign(passing, { status: 200, body, headers: {} }), ALL, {}, '/nowhere');
  expect(idsOf(results, 'broken').length).toBeGreaterThan(idsOf(results, 'holds').length * 3);
});

test('what is answered 429 is not tried, rather than broken', async () => {
  const results = await resultsOf((passing) => passing.path === '/blog' && Object.assign(passing, { status: 429 }), ['4.1']);
  expect(idsOf(results, 'not tried')).toEqual(['4.1:blog', '4.1:blog-anonymous', '4.1:blog-drafts']);
  expect(idsOf(results, 'broken')).toEqual([]);
});

test('without --write no product is sent, and nothing is deleted', async () => {
  const asked: string[] = [];
  await resultsOf(({ method, path }) => asked.push(`${method} ${path}`), ALL, { write: false });
  expect(asked).toContain('POST /token');
  expect(asked.filter((row) => /^POST \/api\/v1\/|^DELETE/.test(row))).toEqual([]);
});

test('the whole list is not read to its end', async () => {
  await shop.sql("update product set name = repeat('n', 255)");
  const answer = await new Deployment(everythingAbout(shop)).askBeginning('/api/v1/shop/products');
  expect(answer.status).toBe(200);
  expect(answer.text.length).toBeLessThan(200_000);
  expect((await shop.rest('GET', '/api/v1/shop/products')).text.length).toBeGreaterThan(300_000);
});

async function resultsOf(
  spoil: (passing: Passing) => unknown,
  only: readonly string[],
  given: Partial<Given> = {},
  below = '',
): Promise<Result[]> {
  const { url, stop } = await spoiled(shop.url + below, spoil);
  const at = new Deployment({ ...everythingAbout(shop, url), ...given });
  try {
    return await run(
      sections.filter(({ number }) => only.includes(number)),
      at,
    );
  } finally {
    await at.leave();
    await stop();
  }
}

function idsOf(results: readonly Result[], outcome: string): string[] {
  return results
    .filter(({ seen }) => seen.outcome === outcome)
    .map(({ promised }) => promised.id)
    .toSorted();
}

function rename(member: string, name: string): (passing: Passing) => void {
  return (passing) => {
    passing.body = passing.body.replace(`{"${member}":`, `{"${name}":`);
  };
}

function inJson(path: RegExp, change: (body: any) => unknown): (passing: Passing) => void {
  return (passing) => {
    if (passing.method === 'GET' && path.test(passing.path) && passing.status === 200)
      passing.body = JSON.stringify(change(JSON.parse(passing.body)));
  };
}

// The signature is of no account where only the claims are looked at.
function inToken(change: (claims: Record<string, unknown>) => Record<string, unknown>): (passing: Passing) => void {
  return (passing) => {
    passing.body = passing.body.replace(/("access_token":"[^.]+\.)([^.]+)/, (_, before: string, payload: string) => {
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
      return before + Buffer.from(JSON.stringify(change(claims))).toString('base64url');
    });
  };
}

function isLogin({ path, method }: Passing): boolean {
  return method === 'POST' && /^\/(token|session\/login)$/.test(path);
}
