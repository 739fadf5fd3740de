import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { runInNewContext } from 'node:vm';
import {
  ApolloClient,
  ApolloLink,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
  type FieldPolicy,
  type TypedDocumentNode,
  type TypePolicies,
} from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { ErrorLink } from '@apollo/client/link/error';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import { print } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { from, Observable, switchMap } from 'rxjs';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { writeUntil } from '../support/events.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const ME: TypedDocumentNode<{ me: { username: string } | null }> = gql`
  {
    me {
      id
      username
    }
  }
`;
const CREATED: TypedDocumentNode<{ productChanged: { kind: string } }> = gql`
  subscription {
    productChanged(kinds: [CREATED]) {
      kind
      product {
        id
        name
      }
    }
  }
`;

const shop = useShop();
const clients: ApolloClient[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.stop();
});

function clientWith(
  link: ApolloLink,
  typePolicies: TypePolicies = { Query: { fields: { products: relayStylePagination() } } },
): ApolloClient {
  const client = new ApolloClient({ link, cache: new InMemoryCache({ typePolicies }) });
  clients.push(client);
  return client;
}

describe('docs/graphql.md: the policy for pages', () => {
  const [, source = ''] =
    /^(\/\/ Appends each page.*?^\}\);\n)const client/ms.exec(
      readFileSync('docs/graphql.md', 'utf8'),
    ) ?? [];
  const pages = runInNewContext(`${stripTypeScriptTypes(source)}; pages`) as (
    ...keyArgs: string[]
  ) => FieldPolicy;

  /** Watches a query of pages of two, and fetches the later pages. */
  const readPages = async (selection: string, count: number, filter: object | null = null) => {
    const client = clientWith(new HttpLink({ uri: `${shop.url}/graphql` }), {
      Query: { fields: { products: pages('filter', 'orderBy') } },
    });
    const query = gql`
      query ($after: String, $filter: ProductFilter) {
        products(first: 2, after: $after, filter: $filter, orderBy: { field: NAME }) {
          ${selection}
          pageInfo { hasNextPage endCursor }
        }
      }
    ` as TypedDocumentNode<any>;
    const shown = client.watchQuery({ query, variables: { filter } });
    const subscription = shown.subscribe(() => undefined);
    await client.query({ query, variables: { filter } });
    const list = () => client.readQuery({ query, variables: { filter } })?.products;
    for (let page = 1; page < count; page++)
      await shown.fetchMore({ variables: { after: list().pageInfo.endCursor } });
    return { list, shown, stop: () => subscription.unsubscribe() };
  };
  const names = ({ nodes, edges }: any) =>
    (nodes ?? edges.map(({ node }: any) => node)).map(({ name }: any) => name);
  const ALL = ['A', 'B', 'C', 'D', 'E'];

  test.each(['nodes { id name }', 'edges { node { id name } }'])(
    'joins two pages, and the last, of %s',
    async (selection) => {
      for (const name of ALL) await shop.makeProduct({ name });
      for (const [count, expected] of [
        [2, ALL.slice(0, 4)],
        [3, ALL],
      ] as const) {
        const { list, stop } = await readPages(selection, count);
        expect(names(list())).toEqual(expected);
        expect(list().pageInfo.hasNextPage).toBe(count === 2);
        stop();
      }
    },
  );

  test('appends a page once that is fetched twice, and begins anew with the first page', async () => {
    for (const name of ALL) await shop.makeProduct({ name });
    const { list, shown, stop } = await readPages('nodes { id name }', 1);
    const after = list().pageInfo.endCursor;
    for (let time = 0; time < 2; time++) await shown.fetchMore({ variables: { after } });
    expect(names(list())).toEqual(ALL.slice(0, 4));
    await shown.refetch();
    expect(names(list())).toEqual(ALL.slice(0, 2));
    stop();
  });
});

test('an error link gets a new token when the server returns UNAUTHENTICATED, and retries', async () => {
  const user = await shop.makeUser();
  const uri = `${shop.url}/graphql`;
  const anonymous = clientWith(new HttpLink({ uri }));
  const LOGIN: TypedDocumentNode<
    { login: { accessToken: string; refreshToken: string } },
    { username: string; password: string }
  > = gql`
    mutation ($username: String!, $password: String!) {
      login(username: $username, password: $password) {
        accessToken
        refreshToken
      }
    }
  `;
  const REFRESH: TypedDocumentNode<{ refresh: { accessToken: string } }, { refreshToken: string }> =
    gql`
      mutation ($refreshToken: String!) {
        refresh(refreshToken: $refreshToken) {
          accessToken
        }
      }
    `;
  const variables = { username: user.username, password: PASSWORD };
  const { data } = await anonymous.mutate({ mutation: LOGIN, variables });
  let token = data?.login.accessToken ?? '';
  let refreshes = 0;
  const refresh = async () => {
    refreshes++;
    const response = await anonymous.mutate({
      mutation: REFRESH,
      variables: { refreshToken: data?.login.refreshToken ?? '' },
    });
    token = response.data?.refresh.accessToken ?? '';
  };
  const client = clientWith(
    ApolloLink.from([
      new ErrorLink(({ error, operation, forward }) => {
        if (
          !CombinedGraphQLErrors.is(error) ||
          error.errors[0]?.extensions?.['code'] !== 'UNAUTHENTICATED'
        )
          return undefined;
        return from(refresh()).pipe(switchMap(() => forward(operation)));
      }),
      new SetContextLink(() => ({ headers: { authorization: `Bearer ${token}` } })),
      new HttpLink({ uri }),
    ]),
  );
  shop.advanceClock(3_600_000);
  expect((await client.query({ query: ME, fetchPolicy: 'network-only' })).data?.me).toMatchObject({
    username: user.username,
  });
  expect((await client.query({ query: ME, fetchPolicy: 'network-only' })).data?.me).toMatchObject({
    username: user.username,
  });
  expect(refreshes).toBe(1);
});

describe('subscriptions', () => {
  /** The first event of a link. */
  const firstFrom = async (link: ApolloLink) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const subscription = clientWith(link)
      .subscribe({ query: CREATED })
      .subscribe({
        next: ({ data, error }) => (error ? reject(error) : resolve(data)),
        error: reject,
      });
    const event = await writeUntil(shop, promise);
    subscription.unsubscribe();
    return event;
  };

  test('arrive by WebSocket', async () => {
    const client = createWsClient({ url: `${shop.url.replace('http', 'ws')}/graphql` });
    expect(await firstFrom(new GraphQLWsLink(client))).toMatchObject({
      productChanged: { kind: 'CREATED' },
    });
    await client.dispose();
  });

  test('arrive as server-sent events', async () => {
    const client = createSseClient({ url: `${shop.url}/graphql` });
    // The link in the documentation of graphql-sse.
    const link = new ApolloLink(
      ({ query, variables }) =>
        new Observable((sink) =>
          client.subscribe(
            { query: print(query), variables },
            {
              next: (result) => sink.next(result as ApolloLink.Result),
              complete: () => sink.complete(),
              error: (error) => sink.error(error),
            },
          ),
        ),
    );
    expect(await firstFrom(link)).toMatchObject({ productChanged: { kind: 'CREATED' } });
    client.dispose();
  });
});
