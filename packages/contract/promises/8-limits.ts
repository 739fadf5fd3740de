import type { Deployment } from '../deployment.ts';
import { partsOf } from '../deployment.ts';
import { expectOf, listOf, hasFieldErrors, pageOf } from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import { getPage, needsEntries, rightForm, USERS, V2_PRODUCTS } from './common.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

const LISTS = [
  { name: 'products', path: V2_PRODUCTS, needs: [], pageSize: 10, pageLevel: 'interface' },
  { name: 'users', path: USERS, needs: ['user'], pageSize: 5, pageLevel: 'decision' },
] as const;

/** Invalid queries, and the parameters in the error. */
const INVALID_QUERIES: { name: string; query: string; names: string[][] }[] = [
  { name: 'page-0', query: 'page=0', names: [['query', 'page']] },
  { name: 'page-text', query: 'page=one', names: [['query', 'page']] },
  { name: 'limit-0', query: 'limit=0', names: [['query', 'limit']] },
  { name: 'limit-fraction', query: 'limit=1.5', names: [['query', 'limit']] },
  { name: 'offset-negative', query: 'offset=-1', names: [['query', 'offset']] },
  { name: 'twice', query: 'limit=1&limit=2', names: [['query', 'limit']] },
  { name: 'both-kinds', query: 'page=1&limit=1', names: [['query']] },
];

/** Lifetimes and page sizes. */
export const limits = section('8', 'Limits', [
  {
    id: 'token-lifetime-login',
    endpoint: 'POST /login',
    level: 'interface',
    needs: ['user'],
    says: 'An access token expires after 30 minutes.',
    check: async (at) => {
      const response = await rightForm(at, '/login');
      const [, { exp, iat }] = partsOf(String(response.member('access_token')));
      if (typeof iat !== 'number') throw new Skipped('the token has no iat');
      expectOf(
        response,
        'a lifetime of 1800 seconds',
        Math.abs(Number(exp) - iat - 1800) <= 1,
        `one of ${Number(exp) - iat}`,
      );
    },
  },
  ...LISTS.flatMap(({ name, path, needs, pageSize, pageLevel }) => [
    {
      id: `limit-${name}`,
      endpoint: `GET ${path}`,
      level: 'interface' as const,
      needs,
      says: 'limit is the number of entries, offset the number of skipped entries.',
      check: async (at: Deployment) => {
        await needsEntries(at, path, 3);
        const all = await getPage(at, path, 'limit=3&offset=0');
        const later = await getPage(at, path, 'limit=2&offset=1');
        expectOf(all, '3 entries', listOf(all).length === 3, `${listOf(all).length}`);
        const isShifted = JSON.stringify(listOf(later)) === JSON.stringify(listOf(all).slice(1));
        expectOf(later, 'the second and the third entry', isShifted);
      },
    },
    {
      id: `default-limit-${name}`,
      endpoint: `GET ${path}`,
      level: 'interface' as const,
      needs,
      says: `The default limit is ${DEFAULT_LIMIT}.`,
      check: async (at: Deployment) => {
        await needsEntries(at, path, DEFAULT_LIMIT + 1);
        await hasLength(at, path, 'offset=0', DEFAULT_LIMIT);
      },
    },
    {
      id: `page-size-${name}`,
      endpoint: `GET ${path}`,
      level: pageLevel,
      needs,
      says: `A numbered page has ${pageSize} entries.`,
      check: async (at: Deployment) => {
        await needsEntries(at, path, pageSize + 1);
        await hasLength(at, path, 'page=1', pageSize);
      },
    },
    {
      id: `past-the-end-${name}`,
      endpoint: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: 'Past the end, the response is 200 without entries and next, with the count.',
      check: async (at: Deployment) => {
        for (const query of ['page=100000000', 'limit=5&offset=1000000000']) {
          const response = await getPage(at, path, query);
          const { items, count, next } = pageOf(response);
          expectOf(response, 'no entries and no next', items.length === 0 && next === null);
          const { count: total } = pageOf(await getPage(at, path, 'limit=1'));
          expectOf(
            response,
            `the count of the whole list, ${total}`,
            count === total || isClose(count, total),
          );
        }
      },
    },
    {
      id: `large-limit-${name}`,
      endpoint: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: `A limit above ${MAX_LIMIT} counts as ${MAX_LIMIT}.`,
      check: async (at: Deployment) => {
        const response = await getPage(at, path, `limit=${MAX_LIMIT * 10}`);
        const { items, count } = pageOf(response);
        const expected = Math.min(count, MAX_LIMIT);
        expectOf(response, `${expected} entries`, items.length === expected, `${items.length}`);
      },
    },
    ...INVALID_QUERIES.map(({ name: id, query, names }) => ({
      id: `${id}-${name}`,
      endpoint: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: `${query} returns 422.`,
      check: async (at: Deployment) => hasFieldErrors(await getPage(at, path, query), ...names),
    })),
    {
      id: `unknown-parameter-${name}`,
      endpoint: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: 'Unknown parameters are ignored.',
      check: async (at: Deployment) => {
        await needsEntries(at, path, 1);
        await hasLength(at, path, 'limit=1&contract=check', 1);
      },
    },
  ]),
]);

async function hasLength(
  at: Deployment,
  path: string,
  query: string,
  length: number,
): Promise<void> {
  const response = await getPage(at, path, query);
  const found = listOf(response).length;
  expectOf(response, `${length} entries`, found === length, `${found}`);
}

// In a deployment in use, the count may change between two requests.
function isClose(count: number, total: number): boolean {
  return Math.abs(count - total) <= Math.max(5, total / 100);
}
