import type { HttpResponse } from '../response.ts';
import { expectOf, hasHeader, hasStatus, firstEntries, listOf } from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import {
  firstPage,
  needsEntries,
  V1_PRODUCTS,
  V2_LOGIN,
  V2_PRODUCTS,
  wholeList,
} from './common.ts';

/** Versions in paths, and the content of each. */
export const versions = section('9', 'Versioning', [
  ...[
    { version: 'v1', path: V1_PRODUCTS },
    { version: 'v2', path: `${V2_PRODUCTS}?page=1` },
  ].map(({ version, path }) => ({
    id: version,
    endpoint: `GET /api/${version}/`,
    level: 'interface' as const,
    needs: [],
    says: `The catalogue is under /api/${version}/.`,
    check: async (at: Parameters<typeof wholeList>[0]) => hasStatus(await at.readStart(path), 200),
  })),
  {
    id: 'v1-whole',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The first version returns the whole list, without pages.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const response = await wholeList(at);
      const count = firstEntries(response).length;
      expectOf(response, 'more than 10 products', count > 10, `${count}`);
    },
  },
  {
    id: 'v1-ignores',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The first version ignores page, limit and offset.',
    check: async (at) => {
      const [first] = firstEntries(await wholeList(at));
      const response = await at.readStart(`${V1_PRODUCTS}?page=2&limit=1&offset=1`);
      const found = firstEntries(response);
      expectOf(
        response,
        'the list from its start',
        JSON.stringify(found[0]) === JSON.stringify(first),
        'another',
      );
    },
  },
  {
    id: 'v2-pages',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The second version lists products in pages.',
    check: async (at) => {
      const response = await firstPage(at);
      const { length } = listOf(response);
      expectOf(response, 'one page at most', length <= 10, `${length} entries`);
    },
  },
  {
    id: 'v2-login',
    endpoint: `OPTIONS ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'The second version has the session login.',
    check: async (at) => {
      const response = await at.send('OPTIONS', V2_LOGIN);
      expectOf(response, 'a known path', response.status !== 404);
    },
  },
  {
    id: 'v1-no-login',
    endpoint: 'OPTIONS /api/v1/auth/login',
    level: 'decision',
    needs: [],
    says: 'The first version has no session login.',
    check: async (at) => hasStatus(await at.send('OPTIONS', '/api/v1/auth/login'), 404),
  },
  {
    id: 'no-other',
    endpoint: 'GET /api/v3/',
    level: 'decision',
    needs: [],
    says: 'Other versions, and paths without one, return 404.',
    check: async (at) => {
      for (const path of ['/api/v3/shop/products', '/api/shop/products'])
        hasStatus(await at.send('GET', path), 404);
    },
  },
  {
    id: 'deprecation',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'A superseded path has Deprecation, and Link to its successor.',
    check: async (at) => {
      const response = await at.readStart(V1_PRODUCTS);
      if (!isSuperseded(response)) throw new Skipped('the path is not superseded');
      hasHeader(response, 'Deprecation', /^@\d+$/);
      hasHeader(response, 'Link', /rel="successor-version"/);
    },
  },
]);

function isSuperseded({ headers }: HttpResponse): boolean {
  return headers.has('Deprecation') || headers.has('Sunset');
}
