import type { ApolloClient } from '@apollo/client';
import { forgetCaller } from '../apollo/cache.ts';
import { problemOf } from '../apollo/problem.ts';
import { graphql } from '../gql/index.ts';
import { tell } from '../ui/notices.ts';
import { dropCredentials, keepCredentials, readAccessToken, readRefreshToken, signedIn } from './credentials.ts';

const RefreshDocument = graphql(`
  mutation Refresh($refreshToken: String!) {
    refresh(refreshToken: $refreshToken) {
      accessToken
      refreshToken
    }
  }
`);

const REFUSALS = new Set(['UNAUTHENTICATED', 'INACTIVE_USER']);

let renewal: Promise<string | undefined> | undefined;

/** The access token for a request: the one at hand, else a new one; none for a caller who is not signed in. */
export async function currentAccessToken(client: ApolloClient): Promise<string | undefined> {
  return renewal ?? readAccessToken() ?? renew(client);
}

/** The access token after this one was refused; none where the session has ended. */
export async function nextAccessToken(client: ApolloClient, refused: string | undefined): Promise<string | undefined> {
  return refused === readAccessToken() ? renew(client) : currentAccessToken(client);
}

// A refresh token is good once, so requests at the same time share one refresh.
function renew(client: ApolloClient): Promise<string | undefined> {
  renewal ??= refresh(client).finally(() => {
    renewal = undefined;
  });
  return renewal;
}

async function refresh(client: ApolloClient): Promise<string | undefined> {
  const refreshToken = readRefreshToken();
  if (refreshToken === undefined) return undefined;
  try {
    const context = { anonymous: true };
    const { data } = await client.mutate({ mutation: RefreshDocument, variables: { refreshToken }, context, fetchPolicy: 'no-cache' });
    // Whoever signed out meanwhile stays so.
    if (!data || readRefreshToken() !== refreshToken) return undefined;
    keepCredentials(data.refresh);
    return data.refresh.accessToken;
  } catch (error) {
    // Where the shop was not reached, the session may still be good.
    if (!REFUSALS.has(problemOf(error).code)) throw error;
    dropCredentials();
    signedIn.set(false);
    forgetCaller(client.cache);
    tell('Your session has ended. Please sign in again.');
    return undefined;
  }
}
