import type { ApolloClient } from '@apollo/client';
import { forgetCaller } from '../apollo/cache.ts';
import { problemOf } from '../apollo/problem.ts';
import { graphql } from '../gql/index.ts';
import { showNotice } from '../ui/notices.ts';
import {
  dropCredentials,
  storeCredentials,
  readAccessToken,
  readRefreshToken,
  signedIn,
} from './credentials.ts';

const RefreshDocument = graphql(`
  mutation Refresh($refreshToken: String!) {
    refresh(refreshToken: $refreshToken) {
      accessToken
      refreshToken
    }
  }
`);

const SESSION_ENDED = new Set(['UNAUTHENTICATED', 'INACTIVE_USER']);

let renewal: Promise<string | undefined> | undefined;

/** The current access token, else a new one; undefined if the caller is not signed in. */
export async function currentAccessToken(client: ApolloClient): Promise<string | undefined> {
  return renewal ?? readAccessToken() ?? renew(client);
}

/** The access token after this one was rejected; undefined if the session has ended. */
export async function nextAccessToken(
  client: ApolloClient,
  rejected: string | undefined,
): Promise<string | undefined> {
  return rejected === readAccessToken() ? renew(client) : currentAccessToken(client);
}

// A refresh token is valid once, so concurrent requests share one refresh.
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
    const { data } = await client.mutate({
      mutation: RefreshDocument,
      variables: { refreshToken },
      context,
      fetchPolicy: 'no-cache',
    });
    // A session that was ended meanwhile stays ended.
    if (!data || readRefreshToken() !== refreshToken) return undefined;
    storeCredentials(data.refresh);
    return data.refresh.accessToken;
  } catch (error) {
    // If the shop was not reached, the session may still be valid.
    if (!SESSION_ENDED.has(problemOf(error).code)) throw error;
    dropCredentials();
    signedIn.set(false);
    forgetCaller(client.cache);
    showNotice('Your session has ended. Please sign in again.');
    return undefined;
  }
}
