import type { Deployment } from '../deployment.ts';
import { expectOf, hasHeader, hasStatus, isError, says } from '../expectations.ts';
import { section } from '../promised.ts';
import { BLOG, ITEMS, ME, USERS, V1_PRODUCT, V1_PRODUCTS, V2_LOGIN, V2_PRODUCTS } from './common.ts';

/** A path of the interface and the methods of its rows. */
interface Known {
  name: string;
  row: string;
  path: (at: Deployment) => string;
  methods: readonly string[];
}

const KNOWN: readonly Known[] = [
  known('/token', 'POST'),
  known('/login', 'POST'),
  known(ME, 'GET'),
  known(ITEMS, 'GET'),
  known(BLOG, 'GET'),
  { name: 'session-login', row: '{session}/login', path: (at) => at.session('login'), methods: ['POST'] },
  { name: 'session-logout', row: '{session}/logout', path: (at) => at.session('logout'), methods: ['POST'] },
  known(V2_LOGIN, 'GET', 'POST'),
  known(V1_PRODUCTS, 'GET'),
  { name: 'api-v1-shop-product-pk', row: `${V1_PRODUCT}{pk}`, path: () => `${V1_PRODUCT}1`, methods: ['GET'] },
  known(V1_PRODUCT, 'POST'),
  known(V2_PRODUCTS, 'GET'),
  known(USERS, 'GET'),
];
const WITHOUT_CHANGE = KNOWN.filter(({ methods, row }) => methods[0] === 'GET' && row !== V2_LOGIN);
const ORIGIN = 'https://client.example';

/** Requests whose answers anyone's page may read, and what they are answered. */
const ANSWERS = [
  { name: 'success', method: 'GET', path: `${V2_PRODUCTS}?limit=1`, status: 200 },
  { name: 'anonymous', method: 'GET', path: ME, status: 401 },
  { name: 'unknown-path', method: 'GET', path: '/contract/nothing', status: 404 },
  { name: 'method', method: 'GET', path: '/login', status: 405 },
  { name: 'bad-query', method: 'GET', path: `${V2_PRODUCTS}?page=0`, status: 422 },
] as const;

const ASKED_HEADERS = [
  { path: ME, asks: 'authorization', gets: 'Content-Type, authorization' },
  { path: ME, asks: 'x-session-id', gets: 'Content-Type, x-session-id' },
  { path: V1_PRODUCT, asks: 'authorization,content-type,idempotency-key', gets: 'Content-Type, authorization, idempotency-key' },
  { path: '/token', asks: 'traceparent,x-request-id', gets: 'Content-Type, traceparent, x-request-id' },
] as const;

/** OPTIONS, cross-origin headers, and methods. */
export const preflight = section('4.5', 'Cross-origin preflight', [
  ...KNOWN.flatMap(({ name, row, path, methods }) => [
    {
      id: `options-${name}`,
      row: `OPTIONS ${row}`,
      level: 'interface' as const,
      needs: [],
      says: 'The answer is 200 with the three headers: any origin, the allowed methods in upper case, and Content-Type.',
      check: async (at: Deployment) => {
        const answer = await at.ask('OPTIONS', path(at));
        hasStatus(answer, 200);
        hasHeader(answer, 'Access-Control-Allow-Origin', '*');
        hasHeader(answer, 'Access-Control-Allow-Methods', /^[A-Z]+(, [A-Z]+)*$/);
        const allowed = (answer.headers.get('Access-Control-Allow-Methods') ?? '').split(', ');
        const wanted = [...methods, 'OPTIONS'];
        expectOf(
          answer,
          `${wanted.join(', ')} among the allowed methods`,
          wanted.every((method) => allowed.includes(method)),
          allowed.join(', '),
        );
        hasHeader(answer, 'Access-Control-Allow-Headers', 'Content-Type');
      },
    },
    {
      id: `options-exact-${name}`,
      row: `OPTIONS ${row}`,
      level: 'decision' as const,
      needs: [],
      says: 'The allowed methods are those of the path and OPTIONS, in that order, also in Allow; there is no body, nor a type of one.',
      check: async (at: Deployment) => {
        const answer = await at.ask('OPTIONS', path(at));
        const allowed = [...methods, 'OPTIONS'].join(', ');
        hasHeader(answer, 'Access-Control-Allow-Methods', allowed);
        hasHeader(answer, 'Allow', allowed);
        expectOf(answer, 'no body', answer.text === '' && !answer.headers.has('Content-Type'));
      },
    },
    {
      id: `method-${name}`,
      row: `PUT ${row}`,
      level: 'decision' as const,
      needs: [],
      says: 'A method that the path lacks is answered 405 with Allow, and a text that names it.',
      check: async (at: Deployment) => {
        const answer = await at.ask('PUT', path(at));
        const member = isOfSessions(row) ? 'data' : 'detail';
        isError(answer, 405, { [member]: 'Method "PUT" not allowed.' });
        hasHeader(answer, 'Allow', [...methods, 'OPTIONS'].join(', '));
      },
    },
    {
      id: `slash-${name}`,
      row: `OPTIONS ${row}`,
      level: 'decision' as const,
      needs: [],
      says: 'The path is known with and without a slash at its end.',
      check: async (at: Deployment) => {
        const own = path(at);
        hasStatus(await at.ask('OPTIONS', own.endsWith('/') ? own.slice(0, -1) : `${own}/`), 200);
      },
    },
  ]),
  ...WITHOUT_CHANGE.filter(({ row }) => row !== V1_PRODUCTS).map(({ name, row, path }) => ({
    id: `head-${name}`,
    row: `HEAD ${row}`,
    level: 'decision' as const,
    needs: [],
    says: 'HEAD is answered as GET, without the body.',
    check: async (at: Deployment) => {
      const get = await at.ask('GET', path(at));
      const head = await at.ask('HEAD', path(at));
      hasStatus(head, get.status);
      expectOf(head, 'no body', head.text === '');
      hasHeader(head, 'Content-Type', get.headers.get('Content-Type') ?? /./);
    },
  })),
  ...ASKED_HEADERS.map(({ path, asks, gets }, index) => ({
    id: `asked-headers-${index + 1}`,
    row: `OPTIONS ${path}`,
    level: 'decision' as const,
    needs: [],
    says: `A browser that asks for ${asks.replaceAll(',', ', ')} is allowed ${gets}.`,
    check: async (at: Deployment) => {
      const headers = { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': asks };
      const answer = await at.ask('OPTIONS', path, { headers });
      hasStatus(answer, 200);
      hasHeader(answer, 'Access-Control-Allow-Headers', gets);
    },
  })),
  ...ANSWERS.map(({ name, method, path, status }) => ({
    id: `origin-${name}`,
    row: `${method} ${path.replace(/\?.*/, '')}`,
    level: 'decision' as const,
    needs: [],
    says: `An answer of ${status} may be read by a page of any origin, and sets no cookie.`,
    check: async (at: Deployment) => {
      const answer = await at.ask(method, path, { headers: { Origin: ORIGIN } });
      hasStatus(answer, status);
      hasHeader(answer, 'Access-Control-Allow-Origin', '*');
      expectOf(answer, 'no cookie', !answer.headers.has('Set-Cookie'), 'one');
    },
  })),
  {
    id: 'trace',
    row: `TRACE ${BLOG}`,
    level: 'decision',
    needs: [],
    says: 'TRACE is answered 405, and echoes nothing.',
    check: async (at) => {
      const answer = await at.askPlainly('TRACE', BLOG, { 'X-Contract': 'echo-me' });
      hasStatus(answer, 405);
      expectOf(answer, 'no echo', !answer.text.includes('echo-me'));
    },
  },
  {
    id: 'unknown-path',
    row: 'OPTIONS',
    level: 'decision',
    needs: [],
    says: 'An unknown path is answered 404 with detail, by OPTIONS, too.',
    check: async (at) => {
      for (const method of ['GET', 'OPTIONS']) {
        const answer = await at.ask(method, '/contract/nothing');
        hasStatus(answer, 404);
        says(answer, 'detail', /./, 'something');
      }
    },
  },
]);

function known(path: string, ...methods: string[]): Known {
  const name = path === V1_PRODUCT ? 'api-v1-shop-product-new' : path.split('/').filter(Boolean).join('-');
  return { name, row: path, path: () => path, methods };
}

/** Where errors stand under `data`. */
function isOfSessions(row: string): boolean {
  return row.startsWith('{session}') || row === V2_LOGIN;
}
