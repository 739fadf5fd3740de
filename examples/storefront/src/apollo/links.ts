import { ApolloLink, CombinedGraphQLErrors } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { ErrorLink } from '@apollo/client/link/error';
import { RetryLink } from '@apollo/client/link/retry';
import { OperationTypeNode } from 'graphql';
import { from, map, switchMap } from 'rxjs';
import { currentAccessToken, nextAccessToken } from '../session/access-token.ts';
import { signedIn } from '../session/credentials.ts';
import { isPassing, problemOf } from './problem.ts';

declare module '@apollo/client' {
  interface DefaultContext {
    /** Sends no credentials, and takes a refusal for an answer. */
    anonymous?: boolean;
    /** The access token that was sent. */
    accessToken?: string | undefined;
    headers?: Record<string, string>;
  }
}

const MAX_TRIES = 4;

/** Asks again, later and later, what only reads; what writes may have been done though no answer came. */
export const retryLink = new RetryLink({
  delay: { initial: 250, max: 4_000, jitter: true },
  attempts: (count, operation, error) =>
    count < MAX_TRIES && operation.operationType === OperationTypeNode.QUERY && isPassing(problemOf(error)),
});

/** Makes a failure of an answer that says that the shop is too busy, so that it is retried like any other. */
export const busyLink = new ApolloLink((operation, forward) =>
  forward(operation).pipe(
    map((result) => {
      if (!result.errors) return result;
      const error = new CombinedGraphQLErrors(result);
      if (isPassing(problemOf(error))) throw error;
      return result;
    }),
  ),
);

/** Takes a new access token when the last one was refused, and asks once more; without a session any more, as nobody. */
export const renewLink = new ErrorLink(({ error, operation, forward }) => {
  const { anonymous = false, accessToken } = operation.getContext();
  if (anonymous || !signedIn.get() || problemOf(error).code !== 'UNAUTHENTICATED') return undefined;
  return from(nextAccessToken(operation.client, accessToken)).pipe(switchMap(() => forward(operation)));
});

/** Sends the access token with each request. A second try has no more of the first than what is set here. */
export const bearerLink = new SetContextLink(async ({ anonymous = false }, { client }) => {
  const accessToken = anonymous ? undefined : await currentAccessToken(client);
  return { accessToken, headers: accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` } };
});
