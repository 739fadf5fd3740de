import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { runInNewContext } from 'node:vm';
import {
  ApolloClient,
  gql,
  HttpLink,
  InMemoryCache,
  type FieldPolicy,
  type TypedDocumentNode,
} from '@apollo/client';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();
const clients: ApolloClient[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.stop();
});

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
    const typePolicies = { Query: { fields: { products: pages('filter', 'orderBy') } } };
    const client = new ApolloClient({
      link: new HttpLink({ uri: `${shop.url}/graphql` }),
      cache: new InMemoryCache({ typePolicies }),
    });
    clients.push(client);
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
