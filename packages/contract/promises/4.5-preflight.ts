import type { Deployment } from '../deployment.ts';
import { expectOf, hasHeader, hasStatus, isError, hasMessage } from '../expectations.ts';
import { section } from '../promised.ts';
import {
  BLOG,
  ITEMS,
  ME,
  USERS,
  V1_PRODUCT,
  V1_PRODUCTS,
  V2_LOGIN,
  V2_PRODUCTS,
} from './common.ts';

/** A path of the interface and its methods. */
interface KnownPath {
  name: string;
  endpoint: string;
  path: (at: Deployment) => string;
  methods: readonly string[];
}

const PATHS: readonly KnownPath[] = [
  known('/token', 'POST'),
  known('/login', 'POST'),
  known(ME, 'GET'),
  known(ITEMS, 'GET'),
  known(BLOG, 'GET'),
  {
    name: 'session-login',
    endpoint: '{session}/login',
    path: (at) => at.session('login'),
    methods: ['POST'],
  },
  {
    name: 'session-logout',
    endpoint: '{session}/logout',
    path: (at) => at.session('logout'),
    methods: ['POST'],
  },
  known(V2_LOGIN, 'GET', 'POST'),
  known(V1_PRODUCTS, 'GET'),
  {
    name: 'api-v1-shop-product-pk',
    endpoint: `${V1_PRODUCT}{pk}`,
    path: () => `${V1_PRODUCT}1`,
    methods: ['GET'],
  },
  known(V1_PRODUCT, 'POST'),
  known(V2_PRODUCTS, 'GET'),
  known(USERS, 'GET'),
];
const READ_ONLY = PATHS.filter(
  ({ methods, endpoint }) => methods[0] === 'GET' && endpoint !== V2_LOGIN,
);
const ORIGIN = 'https://client.example';

/** Requests of other origins, and the status of each. */
const CROSS_ORIGIN = [
  { name: 'success', method: 'GET', path: `${V2_PRODUCTS}?limit=1`, status: 200 },
  { name: 'anonymous', method: 'GET', path: ME, status: 401 },
  { name: 'unknown-path', method: 'GET', path: '/contract/nothing', status: 404 },
  { name: 'method', method: 'GET', path: '/login', status: 405 },
  { name: 'bad-query', method: 'GET', path: `${V2_PRODUCTS}?page=0`, status: 422 },
] as const;

const REQUESTED_HEADERS = [
  { path: ME, requested: 'authorization', allowed: 'Content-Type, authorization' },
  { path: ME, requested: 'x-session-id', allowed: 'Content-Type, x-session-id' },
  {
    path: V1_PRODUCT,
    requested: 'authorization,content-type,idempotency-key',
    allowed: 'Content-Type, authorization, idempotency-key',
  },
  {
    path: '/token',
    requested: 'traceparent,x-request-id',
    allowed: 'Content-Type, traceparent, x-request-id',
  },
] as const;

/** OPTIONS, cross-origin headers, and methods. */
export const preflight = section('4.5', 'Cross-origin preflight', [
  ...PATHS.flatMap(({ name, endpoint, path, methods }) => [
    {
      id: `options-${name}`,
      endpoint: `OPTIONS ${endpoint}`,
      level: 'interface' as const,
      needs: [],
      says: 'The response is 200 and allows any origin, the methods in upper case, and the header Content-Type.',
      check: async (at: Deployment) => {
        const response = await at.send('OPTIONS', path(at));
        hasStatus(response, 200);
        hasHeader(response, 'Access-Control-Allow-Origin', '*');
        hasHeader(response, 'Access-Control-Allow-Methods', /^[A-Z]+(, [A-Z]+)*$/);
        const allowed = (response.headers.get('Access-Control-Allow-Methods') ?? '').split(', ');
        const wanted = [...methods, 'OPTIONS'];
        expectOf(
          response,
          `${wanted.join(', ')} among the allowed methods`,
          wanted.every((method) => allowed.includes(method)),
          allowed.join(', '),
        );
        hasHeader(response, 'Access-Control-Allow-Headers', 'Content-Type');
      },
    },
    {
      id: `options-exact-${name}`,
      endpoint: `OPTIONS ${endpoint}`,
      level: 'decision' as const,
      needs: [],
      says: 'The allowed methods, also in Allow, are those of the path, then OPTIONS; there is no body and no Content-Type.',
      check: async (at: Deployment) => {
        const response = await at.send('OPTIONS', path(at));
        const allowed = [...methods, 'OPTIONS'].join(', ');
        hasHeader(response, 'Access-Control-Allow-Methods', allowed);
        hasHeader(response, 'Allow', allowed);
        expectOf(
          response,
          'no body',
          response.text === '' && !response.headers.has('Content-Type'),
        );
      },
    },
    {
      id: `method-${name}`,
      endpoint: `PUT ${endpoint}`,
      level: 'decision' as const,
      needs: [],
      says: 'Another method returns 405 with Allow and a message that names the method.',
      check: async (at: Deployment) => {
        const response = await at.send('PUT', path(at));
        const member = isSessionEndpoint(endpoint) ? 'data' : 'detail';
        isError(response, 405, { [member]: 'Method "PUT" not allowed.' });
        hasHeader(response, 'Allow', [...methods, 'OPTIONS'].join(', '));
      },
    },
    {
      id: `slash-${name}`,
      endpoint: `OPTIONS ${endpoint}`,
      level: 'decision' as const,
      needs: [],
      says: 'A slash at the end of the path is optional.',
      check: async (at: Deployment) => {
        const exact = path(at);
        hasStatus(
          await at.send('OPTIONS', exact.endsWith('/') ? exact.slice(0, -1) : `${exact}/`),
          200,
        );
      },
    },
  ]),
  ...READ_ONLY.filter(({ endpoint }) => endpoint !== V1_PRODUCTS).map(
    ({ name, endpoint, path }) => ({
      id: `head-${name}`,
      endpoint: `HEAD ${endpoint}`,
      level: 'decision' as const,
      needs: [],
      says: 'HEAD returns the response of GET without the body.',
      check: async (at: Deployment) => {
        const get = await at.send('GET', path(at));
        const head = await at.send('HEAD', path(at));
        hasStatus(head, get.status);
        expectOf(head, 'no body', head.text === '');
        hasHeader(head, 'Content-Type', get.headers.get('Content-Type') ?? /./);
      },
    }),
  ),
  ...REQUESTED_HEADERS.map(({ path, requested, allowed }, index) => ({
    id: `asked-headers-${index + 1}`,
    endpoint: `OPTIONS ${path}`,
    level: 'decision' as const,
    needs: [],
    says: `A preflight with Access-Control-Request-Headers: ${requested.replaceAll(',', ', ')} allows ${allowed}.`,
    check: async (at: Deployment) => {
      const headers = {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': requested,
      };
      const response = await at.send('OPTIONS', path, { headers });
      hasStatus(response, 200);
      hasHeader(response, 'Access-Control-Allow-Headers', allowed);
    },
  })),
  ...CROSS_ORIGIN.map(({ name, method, path, status }) => ({
    id: `origin-${name}`,
    endpoint: `${method} ${path.replace(/\?.*/, '')}`,
    level: 'decision' as const,
    needs: [],
    says: `Pages of any origin can read the response with status ${status}, which sets no cookie.`,
    check: async (at: Deployment) => {
      const response = await at.send(method, path, { headers: { Origin: ORIGIN } });
      hasStatus(response, status);
      hasHeader(response, 'Access-Control-Allow-Origin', '*');
      expectOf(response, 'no cookie', !response.headers.has('Set-Cookie'), 'one');
    },
  })),
  {
    id: 'trace',
    endpoint: `TRACE ${BLOG}`,
    level: 'decision',
    needs: [],
    says: 'TRACE returns 405 without an echo.',
    check: async (at) => {
      const response = await at.sendRaw('TRACE', BLOG, { 'X-Contract': 'echo-me' });
      hasStatus(response, 405);
      expectOf(response, 'no echo', !response.text.includes('echo-me'));
    },
  },
  {
    id: 'unknown-path',
    endpoint: 'OPTIONS',
    level: 'decision',
    needs: [],
    says: 'An unknown path returns 404 with detail, also for OPTIONS.',
    check: async (at) => {
      for (const method of ['GET', 'OPTIONS']) {
        const response = await at.send(method, '/contract/nothing');
        hasStatus(response, 404);
        hasMessage(response, 'detail', /./, 'any message');
      }
    },
  },
]);

function known(path: string, ...methods: string[]): KnownPath {
  const name =
    path === V1_PRODUCT ? 'api-v1-shop-product-new' : path.split('/').filter(Boolean).join('-');
  return { name, endpoint: path, path: () => path, methods };
}

/** Whether error messages are in `data`. */
function isSessionEndpoint(endpoint: string): boolean {
  return endpoint.startsWith('{session}') || endpoint === V2_LOGIN;
}
