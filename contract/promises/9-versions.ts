import type { Answer } from '../answer.ts';
import { expectOf, hasHeader, hasStatus, beginningOf, listOf } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import { firstPage, needsEntries, V1_PRODUCTS, V2_LOGIN, V2_PRODUCTS, wholeList } from './common.ts';

/** The versions in the paths, and what each carries. */
export const versions = section('9', 'Versioning', [
  ...[
    { version: 'v1', path: V1_PRODUCTS },
    { version: 'v2', path: `${V2_PRODUCTS}?page=1` },
  ].map(({ version, path }) => ({
    id: version,
    row: `GET /api/${version}/`,
    level: 'interface' as const,
    needs: [],
    says: `The prefix /api/${version}/ carries the catalogue.`,
    check: async (at: Parameters<typeof wholeList>[0]) => hasStatus(await at.askBeginning(path), 200),
  })),
  {
    id: 'v1-whole',
    row: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The first version has no pages: more than one page of the second comes at once.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const answer = await wholeList(at);
      const count = beginningOf(answer).length;
      expectOf(answer, 'more than 10 products', count > 10, `${count}`);
    },
  },
  {
    id: 'v1-ignores',
    row: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The first version does not read page, limit and offset.',
    check: async (at) => {
      const [first] = beginningOf(await wholeList(at));
      const answer = await at.askBeginning(`${V1_PRODUCTS}?page=2&limit=1&offset=1`);
      const found = beginningOf(answer);
      expectOf(answer, 'the list from its start', JSON.stringify(found[0]) === JSON.stringify(first), 'another');
    },
  },
  {
    id: 'v2-pages',
    row: `GET ${V2_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The second version has the listing in pages.',
    check: async (at) => {
      const answer = await firstPage(at);
      const { length } = listOf(answer);
      expectOf(answer, 'one page at most', length <= 10, `${length} entries`);
    },
  },
  {
    id: 'v2-login',
    row: `OPTIONS ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'The second version has the session login.',
    check: async (at) => {
      const answer = await at.ask('OPTIONS', V2_LOGIN);
      expectOf(answer, 'a known path', answer.status !== 404);
    },
  },
  {
    id: 'v1-no-login',
    row: 'OPTIONS /api/v1/auth/login',
    level: 'decision',
    needs: [],
    says: 'The first version has no session login.',
    check: async (at) => hasStatus(await at.ask('OPTIONS', '/api/v1/auth/login'), 404),
  },
  {
    id: 'no-other',
    row: 'GET /api/v3/',
    level: 'decision',
    needs: [],
    says: 'There is no other version, and none without a number.',
    check: async (at) => {
      for (const path of ['/api/v3/shop/products', '/api/shop/products']) hasStatus(await at.ask('GET', path), 404);
    },
  },
  {
    id: 'deprecation',
    row: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Where a path is superseded, Deprecation says since when, and Link what took over.',
    check: async (at) => {
      const answer = await at.askBeginning(V1_PRODUCTS);
      if (!isSuperseded(answer)) throw new NotTried('the path is not superseded');
      hasHeader(answer, 'Deprecation', /^@\d+$/);
      hasHeader(answer, 'Link', /rel="successor-version"/);
    },
  },
]);

function isSuperseded({ headers }: Answer): boolean {
  return headers.has('Deprecation') || headers.has('Sunset');
}
