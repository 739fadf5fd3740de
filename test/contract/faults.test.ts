import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import {
  asJson,
  asPage,
  asText,
  Deployment,
  run,
  sections,
  type DeploymentOptions,
  type Result,
} from '../../packages/contract/index.ts';
import { fullDeployment, seedShop } from '../support/contract.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { Shop } from '../support/shop.ts';
import { startCorruptor, type Exchange } from '../support/corruptor.ts';

/** A fault of a deployment, the checked sections, and exactly the promises that fail. */
interface Fault {
  fault: string;
  spoil: (passing: Exchange) => unknown;
  only: readonly string[];
  failed: readonly string[];
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
    fault: 'omits WWW-Authenticate',
    spoil: ({ headers }) => delete headers['www-authenticate'],
    only: ['7'],
    failed: ['7:bad-token', '7:wrong-credentials'],
  },
  {
    fault: 'renames detail to message',
    spoil: rename('detail', 'message'),
    only: ['4.1'],
    failed: [
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
    fault: 'omits Access-Control-Allow-Origin for OPTIONS',
    spoil: ({ method, headers }) =>
      method === 'OPTIONS' && delete headers['access-control-allow-origin'],
    only: ['4.5'],
    failed: PATHS.map((path) => `4.5:options-${path}`),
  },
  {
    fault: 'has eleven products on a page',
    spoil: inJson(/^\/api\/v2\/shop\/products\?page=1$/, (body: Page) => ({
      ...body,
      items: [...body.items, body.items[0]],
    })),
    only: ['8', '9'],
    failed: ['8:page-size-products', '9:v2-pages'],
  },
  {
    fault: 'returns the hash of the password',
    spoil: inJson(/^\/users\/me\/$/, (body: object) => ({
      ...body,
      hashed_password: `$2b$10$${'a'.repeat(53)}`,
    })),
    only: ['2'],
    failed: ['2:no-hash-users-me', '2:user-exact'],
  },
  {
    fault: 'has a barcode in another format',
    spoil: (passing) =>
      (passing.body = passing.body.replace(/"barcode":"(\d{13})"/, '"barcode":"$1x"')),
    only: ['2'],
    failed: ['2:barcode-v1', '2:barcode-v2'],
  },
  {
    fault: 'returns 403 for an invalid token',
    spoil: (passing) => {
      if (passing.body.includes('Could not validate')) passing.status = 403;
    },
    only: ['5.1'],
    failed: [
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
    fault: 'accepts a token for another audience',
    spoil: (passing) => {
      const [, payload = ''] = (passing.requestHeaders.authorization ?? '').split('.');
      if (Buffer.from(payload, 'base64url').includes('another-audience')) passing.status = 200;
    },
    only: ['5.2'],
    failed: ['5.2:aud', '5.2:aud-list'],
  },
  {
    fault: 'accepts any session key',
    spoil: (passing) => {
      if (passing.path === '/users/me/' && passing.requestHeaders['x-session-id'] !== undefined)
        passing.status = 200;
    },
    only: ['5.3'],
    failed: ['5.3:authorization-decides', '5.3:ended', '5.3:two-keys', '5.3:unknown'],
  },
  {
    fault: 'returns 200 for a created product',
    spoil: (passing) => {
      if (passing.status === 201) passing.status = 200;
    },
    only: ['4.3'],
    failed: ['4.3:create-201', '4.3:create-decimal-text', '4.3:create-trims'],
  },
  {
    fault: 'paginates the first version',
    spoil: inJson(/^\/api\/v1\/shop\/products/, (body: unknown[]) => body.slice(0, 10)),
    only: ['9'],
    failed: ['9:v1-whole'],
  },
  {
    fault: 'distinguishes wrong passwords from unknown usernames',
    spoil: (passing) => {
      if (/(alice|zoe).*wrong/.test(passing.requestBody))
        passing.body = passing.body.replace('username or password', 'password');
    },
    only: ['4.1'],
    failed: [
      '4.1:login-disabled-wrong',
      '4.1:login-wrong-as-unknown',
      '4.1:token-disabled-wrong',
      '4.1:token-wrong-as-unknown',
    ],
  },
  {
    fault: 'uses the Host of the request in links',
    spoil: ({ requestHeaders, ...passing }) => {
      passing.headers['link'] =
        `<http://${String(requestHeaders['x-forwarded-host'] ?? requestHeaders.host)}/>; rel="next"`;
    },
    only: ['4.3'],
    failed: ['4.3:v2-forged-host', '4.3:v2-links'],
  },
  {
    fault: 'uses one jti for all tokens',
    spoil: inToken((claims) => ({ ...claims, jti: 'one' })),
    only: ['5.2'],
    failed: ['5.2:jti'],
  },
  {
    fault: 'closes the connection',
    spoil: (passing) => {
      if (passing.path === '/blog') passing.status = 0;
    },
    only: ['4.1'],
    failed: ['4.1:blog', '4.1:blog-anonymous', '4.1:blog-drafts'],
  },
];

const shop = new Shop();

beforeAll(async () => {
  await shop.start();
  await seedShop(shop);
});
afterAll(() => shop.stop());

describe('a deployment that', () => {
  test.each(FAULTS)('$fault is detected', async ({ spoil, only, failed }) => {
    const results = await resultsOf(spoil, only);
    expect(idsOf(results, 'failed')).toEqual(failed);
  });
});

test('echoed passwords, tokens, keys and secrets are not printed', async () => {
  const echo = (passing: Exchange): void => {
    const { requestHeaders, requestBody: sent, body } = passing;
    passing.status = 418;
    passing.body = JSON.stringify({
      authorization: requestHeaders.authorization,
      key: requestHeaders['x-session-id'],
      sent,
      body,
      secret: TEST_SECRET,
    });
  };
  // Logins work, so that the other requests have credentials to echo.
  const results = await resultsOf((passing) => (isLogin(passing) ? undefined : echo(passing)), ALL);
  const info = {
    baseUrl: 'http://shop.example',
    isStrict: true,
    logins: { opened: 0, remaining: 0 },
    created: [],
  };
  expect(idsOf(results, 'failed').length).toBeGreaterThan(100);
  const texts = { isColoured: false, brokenOnly: false };
  for (const report of [
    asJson(results, info),
    asText(sections, results, info, texts),
    asPage(results, info),
  ]) {
    expect(report).toMatch(/<hidden>|&lt;hidden&gt;/);
    for (const secret of ['alice-demo-1', 'zoe-demo-1', TEST_SECRET])
      expect(report).not.toContain(secret);
    expect(report).not.toMatch(/eyJ[\w-]{8}/);
    expect(report).not.toMatch(/(?<![\w-])[\w-]{43}(?![\w-])/);
  }
});

test.each(['hello', '[{a}', '{"access_token":1,"session_key":{}}'])(
  'a server that responds %j to every request fails most checks',
  async (body) => {
    const results = await resultsOf(
      (passing) => Object.assign(passing, { status: 200, body, headers: {} }),
      ALL,
      {},
      '/nowhere',
    );
    expect(idsOf(results, 'failed').length).toBeGreaterThan(idsOf(results, 'passed').length * 3);
  },
);

test('checks with a 429 response are skipped, not failed', async () => {
  const results = await resultsOf(
    (passing) => passing.path === '/blog' && Object.assign(passing, { status: 429 }),
    ['4.1'],
  );
  expect(idsOf(results, 'skipped')).toEqual(['4.1:blog', '4.1:blog-anonymous', '4.1:blog-drafts']);
  expect(idsOf(results, 'failed')).toEqual([]);
});

test('without --write, no product is created or deleted', async () => {
  const requests: string[] = [];
  await resultsOf(({ method, path }) => requests.push(`${method} ${path}`), ALL, { write: false });
  expect(requests).toContain('POST /token');
  expect(requests.filter((request) => /^POST \/api\/v1\/|^DELETE/.test(request))).toEqual([]);
});

test('the whole list is not read completely', async () => {
  await shop.sql("update product set name = repeat('n', 255)");
  const response = await new Deployment(fullDeployment(shop)).readStart('/api/v1/shop/products');
  expect(response.status).toBe(200);
  expect(response.text.length).toBeLessThan(200_000);
  expect((await shop.rest('GET', '/api/v1/shop/products')).text.length).toBeGreaterThan(300_000);
});

async function resultsOf(
  spoil: (passing: Exchange) => unknown,
  only: readonly string[],
  options: Partial<DeploymentOptions> = {},
  path = '',
): Promise<Result[]> {
  const { url, stop } = await startCorruptor(shop.url + path, spoil);
  const at = new Deployment({ ...fullDeployment(shop, url), ...options });
  try {
    return await run(
      sections.filter(({ number }) => only.includes(number)),
      at,
    );
  } finally {
    await at.logOutAll();
    await stop();
  }
}

function idsOf(results: readonly Result[], outcome: string): string[] {
  return results
    .filter(({ verdict }) => verdict.outcome === outcome)
    .map(({ promised }) => promised.id)
    .toSorted();
}

function rename(member: string, name: string): (passing: Exchange) => void {
  return (passing) => {
    passing.body = passing.body.replace(`{"${member}":`, `{"${name}":`);
  };
}

function inJson(path: RegExp, change: (body: any) => unknown): (passing: Exchange) => void {
  return (passing) => {
    if (passing.method === 'GET' && path.test(passing.path) && passing.status === 200)
      passing.body = JSON.stringify(change(JSON.parse(passing.body)));
  };
}

// The signature stays, because these checks only read the claims.
function inToken(
  change: (claims: Record<string, unknown>) => Record<string, unknown>,
): (passing: Exchange) => void {
  return (passing) => {
    passing.body = passing.body.replace(
      /("access_token":"[^.]+\.)([^.]+)/,
      (_, before: string, payload: string) => {
        const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<
          string,
          unknown
        >;
        return before + Buffer.from(JSON.stringify(change(claims))).toString('base64url');
      },
    );
  };
}

function isLogin({ path, method }: Exchange): boolean {
  return method === 'POST' && /^\/(token|session\/login)$/.test(path);
}
