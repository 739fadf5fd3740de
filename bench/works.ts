import { fingerprint, writeCursor } from '../src/pagination/cursor.ts';
import { createHmac } from 'node:crypto';
import { sessionKeyOf, sidOf, SIZES, USERS, type Size } from './catalogue.ts';
import type { Ask } from './load.ts';
import { SECRET } from './secret.ts';

/** A kind of request that is measured against its bare twin. */
export interface Work {
  name: string;
  what: string;
  /** The least ratio to the bare twin that is to be reached. */
  goal: number;
  size: Size;
  /** The request of this number; each is another one. In a database of this size, where it is not the one of the work. */
  ask(index: number, size?: Size): Ask;
  /** How many different ones there are to be sent. */
  different: number;
  /** It changes something, so what it answers is not compared. */
  writes?: true;
}

const PK_ORDER = [{ property: 'pk', kind: 'pk' }] as const;
const PRINT = fingerprint('products', PK_ORDER);
const PAGE = `query Page($after: String) {
  products(first: 10, after: $after) { edges { cursor node { pk name barcode price } } pageInfo { hasNextPage endCursor } }
}`;
const PRODUCT = 'query Product($pk: ID!) { product(pk: $pk) { pk name barcode price } }';
const ME =
  'query Me { me { username email items(first: 5) { nodes { itemId } } blog(first: 5) { nodes { title creator { username } } } } }';

/** The kinds of requests, in the order of the table. */
export const works: readonly Work[] = [
  {
    name: 'graphql-page',
    what: 'GraphQL page of ten, every request another cursor',
    goal: 0.85,
    size: '1m',
    different: 20_000,
    ask: (index, size = '1m') => pageAfter(1 + spread(index, size)),
  },
  {
    name: 'graphql-page-hot',
    what: 'the same page, hot and anonymous',
    goal: 2,
    size: '1m',
    different: 1,
    ask: () => pageAfter(5_000),
  },
  {
    name: 'graphql-product',
    what: '`product(pk)` by GraphQL',
    goal: 0.8,
    size: '1m',
    different: 20_000,
    ask: (index, size = '1m') => graphql('product', PRODUCT, { pk: String(1 + spread(index, size)) }),
  },
  {
    name: 'rest-product',
    what: '`product(pk)` by REST',
    goal: 0.9,
    size: '1m',
    different: 20_000,
    ask: (index, size = '1m') => ({ method: 'GET', path: `/api/v1/shop/product/${1 + spread(index, size)}` }),
  },
  {
    name: 'rest-page',
    what: 'REST v2 page with its exact count; the twin does not count',
    goal: 0.9,
    size: '1m',
    different: 20_000,
    ask: (index, size = '1m') => productsPage(1 + (spread(index, size) % (SIZES[size] / 10))),
  },
  {
    name: 'me-bearer',
    what: '`/users/me/` by bearer token',
    goal: 0.8,
    size: '1m',
    different: USERS,
    ask: (index) => ({ method: 'GET', path: '/users/me/', headers: { ...as(index), Authorization: `Bearer ${tokenOf(userAt(index))}` } }),
  },
  {
    name: 'me-session',
    what: '`/users/me/` by session key',
    goal: 0.8,
    size: '1m',
    different: USERS,
    ask: (index) => ({ method: 'GET', path: '/users/me/', headers: { ...as(index), 'X-SESSION-ID': sessionKeyOf(userAt(index)) } }),
  },
  {
    name: 'graphql-me',
    what: 'GraphQL `me { items blog { creator } }`',
    goal: 0.6,
    size: '1m',
    different: USERS,
    ask: (index) => {
      const { headers, ...asked } = graphql('me', ME);
      return { ...asked, headers: { ...headers, ...as(index), Authorization: `Bearer ${tokenOf(userAt(index))}` } };
    },
  },
  {
    name: 'create',
    what: 'creation by REST',
    goal: 0.75,
    size: '1m',
    different: 60_000,
    writes: true,
    ask: (index) => ({
      method: 'POST',
      path: '/api/v1/shop/product/',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${tokenOf(userAt(index))}` },
      body: JSON.stringify({ name: `New product ${index}`, barcode: barcodeAt(index), price: 9.99 }),
    }),
  },
];

/** The request for a page of ten by REST. */
export function productsPage(page: number): Ask {
  return { method: 'GET', path: `/api/v2/shop/products?page=${page}` };
}

/** Where in the catalogue the request of this number looks: all over it, the same in every run. */
export function spread(index: number, size: Size): number {
  return (index * 7_919) % (SIZES[size] - 20);
}

/** The cursor of a page of ten by GraphQL that starts after this pk. */
function cursorAt(pk: number): string {
  return writeCursor(PK_ORDER, PRINT, [pk]);
}

/** The request for a page of ten by GraphQL. */
export function pageAfter(pk: number): Ask {
  return graphql('page', PAGE, { after: cursorAt(pk) });
}

/** The request for a page of a hundred by GraphQL that starts after this pk. */
export function hundredAfter(pk: number): Ask & { headers: Record<string, string> } {
  return graphql('hundred', PAGE.replace('first: 10', 'first: 100'), { after: cursorAt(pk) });
}

// The twin has no parser of GraphQL, so it is told by a header which of its answers is meant.
function graphql(work: string, query: string, variables: Record<string, unknown> = {}): Ask & { headers: Record<string, string> } {
  return {
    method: 'POST',
    path: '/graphql',
    headers: { 'Content-Type': 'application/json', 'X-Work': work },
    body: JSON.stringify({ query, variables }),
  };
}

function userAt(index: number): number {
  return 1 + (index % USERS);
}

// For the twin, which looks at no credentials.
function as(index: number): Record<string, string> {
  return { 'X-User': String(userAt(index)) };
}

/** An access token of this user's session, as our server would have signed it. */
export function tokenOf(user: number): string {
  const now = Math.floor(Date.now() / 1000);
  const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { sub: `user${user}`, sid: sidOf(user), scopes: ['products:write', 'blog:write'], iat: now, exp: now + 86_400 };
  const signed = `${text({ alg: 'HS256', typ: 'JWT' })}.${text(claims)}`;
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
}

let barcodes = Date.now() % 1e9;

// Another one at each call, and in each run.
function barcodeAt(_index: number): string {
  const digits = `50${String(barcodes++ % 1e10).padStart(10, '0')}`;
  const sum = Array.from(digits).reduce((total, digit, index) => total + Number(digit) * (index % 2 ? 3 : 1), 0);
  return digits + String((10 - (sum % 10)) % 10);
}
