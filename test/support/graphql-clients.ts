import { ApolloClient, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { cacheExchange, Client, fetchExchange } from '@urql/core';
import { ClientError, GraphQLClient } from 'graphql-request';

/** A request to a GraphQL API. */
interface ClientRequest {
  url: string;
  query: string;
  variables?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** The result that a client returns. */
interface ClientResult {
  data?: unknown;
  /** `extensions.code` of each GraphQL error, or the text of any other failure. */
  codes: string[];
}

type Send = (request: ClientRequest) => Promise<ClientResult>;

/** Clients, configured as in their documentation, by request method. */
export const GRAPHQL_CLIENTS: readonly (readonly [name: string, send: Send])[] = [
  ['Apollo Client', apollo(false)],
  ['Apollo Client with useGETForQueries', apollo(true)],
  ['urql', urql],
  ['graphql-request', graphqlRequest('POST')],
  ['graphql-request by GET', graphqlRequest('GET')],
];

function apollo(useGETForQueries: boolean): Send {
  return async ({ url, query: text, variables = {}, headers = {} }) => {
    const client = new ApolloClient({
      link: new HttpLink({ uri: url, headers, useGETForQueries }),
      cache: new InMemoryCache(),
    });
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

async function urql({
  url,
  query: text,
  variables = {},
  headers = {},
}: ClientRequest): Promise<ClientResult> {
  const client = new Client({
    url,
    exchanges: [cacheExchange, fetchExchange],
    fetchOptions: { headers },
  });
  const { data, error } = await (
    isMutation(text) ? client.mutation(text, variables) : client.query(text, variables)
  ).toPromise();
  const found = data as unknown;
  if (!error) return { data: found, codes: [] };
  return { codes: error.networkError ? [String(error)] : codesOf(error.graphQLErrors) };
}

function graphqlRequest(method: 'GET' | 'POST'): Send {
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

function codesOf(
  errors: readonly { extensions?: Record<string, unknown> | undefined }[],
): string[] {
  return errors.map(({ extensions }) => String(extensions?.['code']));
}

function isMutation(query: string): boolean {
  return query.startsWith('mutation');
}
