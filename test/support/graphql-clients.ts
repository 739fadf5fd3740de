import { ApolloClient, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { cacheExchange, Client, fetchExchange } from '@urql/core';
import { ClientError, GraphQLClient } from 'graphql-request';

/** A request to a GraphQL API. */
interface Asked {
  url: string;
  query: string;
  variables?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** What a client hands to its application. */
interface Found {
  data?: unknown;
  /** `extensions.code` of each GraphQL error. A failure that the client takes for another kind is there in its own words. */
  codes: string[];
}

type Ask = (asked: Asked) => Promise<Found>;

/** Clients as their documentation sets them up, and the methods by which they send queries. */
export const GRAPHQL_CLIENTS: readonly (readonly [name: string, ask: Ask])[] = [
  ['Apollo Client', apollo(false)],
  ['Apollo Client with useGETForQueries', apollo(true)],
  ['urql', urql],
  ['graphql-request', graphqlRequest('POST')],
  ['graphql-request by GET', graphqlRequest('GET')],
];

function apollo(useGETForQueries: boolean): Ask {
  return async ({ url, query: text, variables = {}, headers = {} }) => {
    const client = new ApolloClient({ link: new HttpLink({ uri: url, headers, useGETForQueries }), cache: new InMemoryCache() });
    const document = gql(text);
    try {
      const { data } = await (isMutation(text)
        ? client.mutate({ mutation: document, variables })
        : client.query({ query: document, variables }));
      return { data, codes: [] };
    } catch (error) {
      return { codes: CombinedGraphQLErrors.is(error) ? codesOf(error.errors) : [String(error)] };
    } finally {
      client.stop();
    }
  };
}

async function urql({ url, query: text, variables = {}, headers = {} }: Asked): Promise<Found> {
  const client = new Client({ url, exchanges: [cacheExchange, fetchExchange], fetchOptions: { headers } });
  const { data, error } = await (isMutation(text) ? client.mutation(text, variables) : client.query(text, variables)).toPromise();
  const found = data as unknown;
  if (!error) return { data: found, codes: [] };
  return { codes: error.networkError ? [String(error)] : codesOf(error.graphQLErrors) };
}

function graphqlRequest(method: 'GET' | 'POST'): Ask {
  return async ({ url, query, variables = {}, headers = {} }) => {
    const client = new GraphQLClient(url, { method, headers });
    try {
      return { data: await client.request(query, variables), codes: [] };
    } catch (error) {
      const errors = error instanceof ClientError ? error.response.errors : undefined;
      return { codes: errors ? codesOf(errors) : [String(error)] };
    }
  };
}

function codesOf(errors: readonly { extensions?: Record<string, unknown> | undefined }[]): string[] {
  return errors.map(({ extensions }) => String(extensions?.['code']));
}

function isMutation(query: string): boolean {
  return query.startsWith('mutation');
}
