import type { Deployment } from '../deployment.ts';
import { partsOf } from '../deployment.ts';
import { expectOf, listOf, namesFields, pageOf } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import { askPage, needsEntries, rightForm, USERS, V2_PRODUCTS } from './common.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

const LISTS = [
  { name: 'products', path: V2_PRODUCTS, needs: [], pageSize: 10, pageLevel: 'interface' },
  { name: 'users', path: USERS, needs: ['user'], pageSize: 5, pageLevel: 'decision' },
] as const;

/** Queries that no list takes, and the parameters that are to blame. */
const BAD_QUERIES: { name: string; query: string; names: string[][] }[] = [
  { name: 'page-0', query: 'page=0', names: [['query', 'page']] },
  { name: 'page-text', query: 'page=one', names: [['query', 'page']] },
  { name: 'limit-0', query: 'limit=0', names: [['query', 'limit']] },
  { name: 'limit-fraction', query: 'limit=1.5', names: [['query', 'limit']] },
  { name: 'offset-negative', query: 'offset=-1', names: [['query', 'offset']] },
  { name: 'twice', query: 'limit=1&limit=2', names: [['query', 'limit']] },
  { name: 'both-kinds', query: 'page=1&limit=1', names: [['query']] },
];

/** Lifetimes and the sizes of pages. */
export const limits = section('8', 'Limits', [
  {
    id: 'token-lifetime-login',
    row: 'POST /login',
    level: 'interface',
    needs: ['user'],
    says: 'An access token lives 30 minutes.',
    check: async (at) => {
      const answer = await rightForm(at, '/login');
      const [, { exp, iat }] = partsOf(String(answer.member('access_token')));
      if (typeof iat !== 'number') throw new NotTried('the token does not tell when it was issued');
      expectOf(answer, 'a lifetime of 1800 seconds', Math.abs(Number(exp) - iat - 1800) <= 1, `one of ${Number(exp) - iat}`);
    },
  },
  ...LISTS.flatMap(({ name, path, needs, pageSize, pageLevel }) => [
    {
      id: `limit-${name}`,
      row: `GET ${path}`,
      level: 'interface' as const,
      needs,
      says: 'limit is how many entries come, offset how many are passed over.',
      check: async (at: Deployment) => {
        await needsEntries(at, path, 3);
        const all = await askPage(at, path, 'limit=3&offset=0');
        const later = await askPage(at, path, 'limit=2&offset=1');
        expectOf(all, '3 entries', listOf(all).length === 3, `${listOf(all).length}`);
        const isShifted = JSON.stringify(listOf(later)) === JSON.stringify(listOf(all).slice(1));
        expectOf(later, 'the second and the third entry', isShifted);
      },
    },
    {
      id: `default-limit-${name}`,
      row: `GET ${path}`,
      level: 'interface' as const,
      needs,
      says: `Without limit, ${DEFAULT_LIMIT} entries come.`,
      check: async (at: Deployment) => {
        await needsEntries(at, path, DEFAULT_LIMIT + 1);
        await hasLength(at, path, 'offset=0', DEFAULT_LIMIT);
      },
    },
    {
      id: `page-size-${name}`,
      row: `GET ${path}`,
      level: pageLevel,
      needs,
      says: `A page by number has ${pageSize} entries.`,
      check: async (at: Deployment) => {
        await needsEntries(at, path, pageSize + 1);
        await hasLength(at, path, 'page=1', pageSize);
      },
    },
    {
      id: `past-the-end-${name}`,
      row: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: 'Past the end the answer is 200 with no entries, the count, and no next.',
      check: async (at: Deployment) => {
        for (const query of ['page=100000000', 'limit=5&offset=1000000000']) {
          const answer = await askPage(at, path, query);
          const { items, count, next } = pageOf(answer);
          expectOf(answer, 'no entries and no next', items.length === 0 && next === null);
          const { count: asked } = pageOf(await askPage(at, path, 'limit=1'));
          expectOf(answer, `the count of the whole list, ${asked}`, count === asked || isAlive(count, asked));
        }
      },
    },
    {
      id: `large-limit-${name}`,
      row: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: `A limit above ${MAX_LIMIT} counts as ${MAX_LIMIT}.`,
      check: async (at: Deployment) => {
        const answer = await askPage(at, path, `limit=${MAX_LIMIT * 10}`);
        const { items, count } = pageOf(answer);
        const most = Math.min(count, MAX_LIMIT);
        expectOf(answer, `${most} entries`, items.length === most, `${items.length}`);
      },
    },
    ...BAD_QUERIES.map(({ name: query, query: asked, names }) => ({
      id: `${query}-${name}`,
      row: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: `${asked} is answered 422.`,
      check: async (at: Deployment) => namesFields(await askPage(at, path, asked), ...names),
    })),
    {
      id: `unknown-parameter-${name}`,
      row: `GET ${path}`,
      level: 'decision' as const,
      needs,
      says: 'Parameters that the row does not know are ignored.',
      check: async (at: Deployment) => {
        await needsEntries(at, path, 1);
        await hasLength(at, path, 'limit=1&contract=check', 1);
      },
    },
  ]),
]);

async function hasLength(at: Deployment, path: string, query: string, length: number): Promise<void> {
  const answer = await askPage(at, path, query);
  const found = listOf(answer).length;
  expectOf(answer, `${length} entries`, found === length, `${found}`);
}

// A deployment that is in use gains and loses entries while it is asked.
function isAlive(count: number, asked: number): boolean {
  return Math.abs(count - asked) <= Math.max(5, asked / 100);
}
