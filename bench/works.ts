import { fingerprint, writeCursor } from '../src/pagination/cursor.ts';
import { createHmac } from 'node:crypto';
import { sessionKeyOf, sidOf, SIZES, USERS, type Size } from './catalogue.ts';
import type { BenchRequest } from './load.ts';
import { SECRET } from './secret.ts';

/** A kind of request, measured against the baseline. */
export interface Work {
  name: string;
  what: string;
  /** Minimum ratio of the rate to the baseline's. */
  goal: number;
  size: Size;
  /** Returns the request of this number, for a database of this size; each is different. */
  request(index: number, size?: Size): BenchRequest;
  /** Number of different requests. */
  different: number;
  /** Number of concurrent clients, 16 by default. */
  clients?: number;
  /** It writes, so its responses are not compared. */
  writes?: true;
}

/** More requests than the response cache remembers. */
const DISTINCT = 10_000;
const PK_ORDER = [{ property: 'pk', kind: 'pk' }] as const;
const FINGERPRINT = fingerprint({ name: 'products', order: PK_ORDER });
const PAGE = `query Page($after: String) {
  products(first: 10, after: $after) { edges { cursor node { pk name barcode price } } pageInfo { hasNextPage endCursor } }
}`;
const PRODUCT = 'query Product($pk: ID!) { product(pk: $pk) { pk name barcode price } }';
const CREATE =
  'mutation Create($input: ProductInput!) { createProduct(input: $input) { pk name barcode price } }';
const ME =
  'query Me { me { username email items(first: 5) { nodes { itemId } } blog(first: 5) { nodes { title creator { username } } } } }';

/** The kinds of requests, in the order of the table. */
export const works: readonly Work[] = [
  {
    name: 'graphql-page',
    what: 'GraphQL page of ten, every request another cursor',
    goal: 0.95,
    size: '1m',
    different: 20_000,
    request: (index, size = '1m') => pageAfter(1 + spread(index, size)),
  },
  {
    name: 'graphql-page-hot',
    what: 'the same page, repeated and anonymous',
    goal: 2,
    size: '1m',
    different: 1,
    request: () => pageAfter(5_000),
  },
  {
    name: 'graphql-product',
    what: '`product(pk)` by GraphQL',
    goal: 1,
    size: '1m',
    different: 20_000,
    request: (index, size = '1m') =>
      graphql('product', PRODUCT, { pk: String(1 + spread(index, size)) }),
  },
  {
    name: 'rest-product',
    what: '`product(pk)` by REST',
    goal: 1,
    size: '1m',
    different: 20_000,
    request: (index, size = '1m') => ({
      method: 'GET',
      path: `/api/v1/shop/product/${1 + spread(index, size)}`,
    }),
  },
  {
    name: 'rest-page',
    what: 'REST v2 page with its exact count; the baseline does not count',
    goal: 0.95,
    size: '1m',
    different: 20_000,
    request: (index, size = '1m') => productsPage(1 + (spread(index, size) % (SIZES[size] / 10))),
  },
  {
    name: 'rest-page-hot',
    what: 'the same page, repeated and anonymous',
    goal: 2,
    size: '1m',
    different: 1,
    request: () => productsPage(500),
  },
  {
    name: 'me-bearer',
    what: '`/users/me/` by bearer token',
    goal: 0.95,
    size: '1m',
    different: USERS,
    request: (index) => ({
      method: 'GET',
      path: '/users/me/',
      headers: { ...as(index), Authorization: `Bearer ${tokenOf(userAt(index))}` },
    }),
  },
  {
    name: 'me-session',
    what: '`/users/me/` by session key',
    goal: 0.95,
    size: '1m',
    different: USERS,
    request: (index) => ({
      method: 'GET',
      path: '/users/me/',
      headers: { ...as(index), 'X-SESSION-ID': sessionKeyOf(userAt(index)) },
    }),
  },
  {
    name: 'graphql-me',
    what: 'GraphQL `me { items blog { creator } }`',
    goal: 0.75,
    size: '1m',
    different: USERS,
    request: (index) => {
      const { headers, ...request } = graphql('me', ME);
      return {
        ...request,
        headers: { ...headers, ...as(index), Authorization: `Bearer ${tokenOf(userAt(index))}` },
      };
    },
  },
  ...creations('create', 'creation by REST', 0.65, (index) => ({
    method: 'POST',
    path: '/api/v1/shop/product/',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(draft(index)),
  })),
  ...creations('graphql-create', 'creation by GraphQL', 0.6, (index) =>
    graphql('create', CREATE, { input: draft(index) }),
  ),
];

/** Returns the work of this name. Throws if there is none. */
export function workOf(name: string): Work {
  const work = works.find((known) => known.name === name);
  if (!work) throw new Error(`There is no work ${name}`);
  return work;
}

/** Returns the request for a REST page of ten. */
export function productsPage(page: number): BenchRequest {
  return { method: 'GET', path: `/api/v2/shop/products?page=${page}` };
}

/**
 * Returns requests for the same responses, each different from the others, so that the response
 * cache has none of them.
 */
export function distinct(requests: readonly BenchRequest[]): BenchRequest[] {
  return Array.from({ length: Math.max(DISTINCT, requests.length) }, (_, index) => {
    const request = requests[index % requests.length] as BenchRequest;
    const mark = String(index);
    if (request.body === undefined)
      return {
        ...request,
        path: `${request.path}${request.path.includes('?') ? '&' : '?'}n=${mark}`,
      };
    // The cache has no responses to forms.
    if (!request.body.startsWith('{')) return request;
    const body = JSON.parse(request.body) as object;
    return {
      ...request,
      body: JSON.stringify({ ...body, extensions: { clientLibrary: { version: mark } } }),
    };
  });
}

/** Returns a position in the catalogue for the request of this number, the same in every run. */
export function spread(index: number, size: Size): number {
  return (index * 7_919) % (SIZES[size] - 20);
}

/** Returns the cursor of a GraphQL page of ten that starts after this pk. */
function cursorAt(pk: number): string {
  return writeCursor(FINGERPRINT, [pk]);
}

/** Returns the request for a GraphQL page of ten. */
export function pageAfter(pk: number): BenchRequest {
  return graphql('page', PAGE, { after: cursorAt(pk) });
}

/** Returns the request for a GraphQL page of a hundred that starts after this pk. */
export function hundredAfter(pk: number): BenchRequest & { headers: Record<string, string> } {
  return graphql('hundred', PAGE.replace('first: 10', 'first: 100'), { after: cursorAt(pk) });
}

// The baseline does not parse GraphQL; a header selects its response.
function graphql(
  work: string,
  query: string,
  variables: Record<string, unknown> = {},
): BenchRequest & { headers: Record<string, string> } {
  return {
    method: 'POST',
    path: '/graphql',
    headers: { 'Content-Type': 'application/json', 'X-Work': work },
    body: JSON.stringify({ query, variables }),
  };
}

// The work on 16 connections, and on one.
function creations(
  name: string,
  what: string,
  goal: number,
  request: (index: number) => BenchRequest & { headers: Record<string, string> },
): Work[] {
  const work: Work = {
    name,
    what,
    goal,
    size: '1m',
    different: 60_000,
    writes: true,
    request: (index) => {
      const { headers, ...rest } = request(index);
      return {
        ...rest,
        headers: { ...headers, Authorization: `Bearer ${tokenOf(userAt(index))}` },
      };
    },
  };
  return [work, { ...work, name: `${name}-one`, what: `${what}, one client`, clients: 1 }];
}

function draft(index: number) {
  return { name: `New product ${index}`, barcode: barcodeAt(index), price: 9.99 };
}

function userAt(index: number): number {
  return 1 + (index % USERS);
}

// For the baseline, which checks no credentials.
function as(index: number): Record<string, string> {
  return { 'X-User': String(userAt(index)) };
}

/** Returns an access token of this user's session, as our server would sign it. */
export function tokenOf(user: number): string {
  const now = Math.floor(Date.now() / 1000);
  const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    sub: `user${user}`,
    sid: sidOf(user),
    scopes: ['products:write', 'blog:write'],
    iat: now,
    exp: now + 86_400,
  };
  const signed = `${text({ alg: 'HS256', typ: 'JWT' })}.${text(claims)}`;
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
}

let barcodes = Date.now() % 1e9;

// Returns another barcode at each call, and in each run.
function barcodeAt(_index: number): string {
  const digits = `50${String(barcodes++ % 1e10).padStart(10, '0')}`;
  const sum = Array.from(digits).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 ? 3 : 1),
    0,
  );
  return digits + String((10 - (sum % 10)) % 10);
}
