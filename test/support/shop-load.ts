import { demoUsers } from '../../src/features/demo-data.ts';
import { NEW_BARCODE, wire, type LoadPart } from './open-load.ts';

const PAGES = 40;
const EACH = 100;
const PAGE = `query Page($after: String) {
  products(first: 10, after: $after) { edges { cursor node { pk name barcode price } } pageInfo { hasNextPage endCursor } }
}`;
const ME =
  'query Me { me { username items(first: 5) { nodes { itemId } } blog(first: 5) { nodes { title creator { username } } } } }';
const LIST = '/api/v2/shop/products';

/** The requests of clients of a shop, by kind. */
export interface ShopRequests {
  /** Products and pages by REST, and the profile. */
  rest: string[];
  /** Pages by GraphQL, each with another cursor. */
  pages: string[];
  /** The profile by GraphQL, with its items and blog entries. */
  profiles: string[];
  creations: string[];
  logins: string[];
}

/** Signs in at a server with demo data, and returns the requests. */
export async function shopRequests(url: string): Promise<ShopRequests> {
  const [alice, bob] = demoUsers;
  if (!alice || !bob) throw new Error('there are no demo users');
  // Repeated logins end the oldest sessions, so they use another user than the session of the
  // requests.
  const form = new URLSearchParams({ username: bob.username, password: bob.password }).toString();
  const { username, password } = alice;
  const { session_key: key } = await postJson<{ session_key: string }>(`${url}/session/login`, {
    username,
    password,
  });
  const session = { 'X-SESSION-ID': key };
  const { count } = (await (await fetch(`${url}${LIST}?page=1`)).json()) as { count: number };
  const pages = Math.max(1, Math.floor(count / 10));
  const spread = (index: number, size: number) => 1 + ((index * 7_919) % size);
  const cursors = await cursorsOf(url);
  return {
    rest: Array.from({ length: 2_000 }, (_, index) => {
      if (index % 10 === 0) return wire('GET', '/users/me/', session);
      return index % 10 < 7
        ? wire('GET', `/api/v1/shop/product/${spread(index, count)}`)
        : wire('GET', `${LIST}?page=${spread(index, pages)}`);
    }),
    pages: cursors.map((after) =>
      wire('POST', '/graphql', {}, JSON.stringify({ query: PAGE, variables: { after } })),
    ),
    profiles: [wire('POST', '/graphql', session, JSON.stringify({ query: ME }))],
    creations: [
      wire(
        'POST',
        '/api/v1/shop/product/',
        session,
        JSON.stringify({ name: 'Under load', barcode: NEW_BARCODE, price: 9.99 }),
      ).replace(
        /Content-Length: (\d+)/,
        (_, length) => `Content-Length: ${Number(length) - NEW_BARCODE.length + 13}`,
      ),
    ],
    logins: [wire('POST', '/token', { 'Content-Type': 'application/x-www-form-urlencoded' }, form)],
  };
}

/** The mixed load: 80 % reads by REST, 15 % GraphQL, 4 % creations, 1 % logins. */
export function mixedLoad({ rest, pages, profiles, creations, logins }: ShopRequests): LoadPart[] {
  return [
    { name: 'rest', share: 80, requests: rest },
    { name: 'graphql', share: 12, requests: pages },
    { name: 'profiles', share: 3, requests: profiles },
    { name: 'creations', share: 4, requests: creations },
    { name: 'logins', share: 1, requests: logins },
  ];
}

async function cursorsOf(url: string): Promise<string[]> {
  const query = `query ($after: String) { products(first: ${EACH}, after: $after) { edges { cursor } pageInfo { hasNextPage endCursor } } }`;
  const cursors: string[] = [];
  let after: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    const { data }: Paged = await postJson<Paged>(`${url}/graphql`, {
      query,
      variables: { after },
    });
    cursors.push(...data.products.edges.map(({ cursor }) => cursor));
    after = data.products.pageInfo.endCursor;
    if (!data.products.pageInfo.hasNextPage) break;
  }
  return cursors;
}

interface Paged {
  data: {
    products: {
      edges: { cursor: string }[];
      pageInfo: { hasNextPage: boolean; endCursor: string | null };
    };
  };
}

async function postJson<Answer>(url: string, body: object): Promise<Answer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Answer;
}
