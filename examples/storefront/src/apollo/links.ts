import { ApolloLink, CombinedGraphQLErrors } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { ErrorLink } from '@apollo/client/link/error';
import { RetryLink } from '@apollo/client/link/retry';
import { OperationTypeNode } from 'graphql';
import { from, map, switchMap } from 'rxjs';
import { currentAccessToken, nextAccessToken } from '../session/access-token.ts';
import { signedIn } from '../session/credentials.ts';
import { isTransient, problemOf } from './problem.ts';

declare module '@apollo/client' {
  interface DefaultContext {
    /** Sends no credentials, and does not renew them after an error. */
    anonymous?: boolean;
    /** The access token that was sent. */
    accessToken?: string | undefined;
    headers?: Record<string, string>;
  }
}

const MAX_TRIES = 4;

/** Retries queries with backoff. Mutations are not retried, because they may have been executed. */
export const retryLink = new RetryLink({
  delay: { initial: 250, max: 4_000, jitter: true },
  attempts: (count, operation, error) =>
    count < MAX_TRIES &&
    operation.operationType === OperationTypeNode.QUERY &&
    isTransient(problemOf(error)),
});

/** Turns a response with a transient error into a failure, so that it is retried. */
export const busyLink = new ApolloLink((operation, forward) =>
  forward(operation).pipe(
    map((result) => {
      if (!result.errors) return result;
      const error = new CombinedGraphQLErrors(result);
      if (isTransient(problemOf(error))) throw error;
      return result;
    }),
  ),
);

/** Renews a rejected access token and repeats the request; anonymously if the session has ended. */
export const renewLink = new ErrorLink(({ error, operation, forward }) => {
  const { anonymous = false, accessToken } = operation.getContext();
  if (anonymous || !signedIn.get() || problemOf(error).code !== 'UNAUTHENTICATED') return undefined;
  return from(nextAccessToken(operation.client, accessToken)).pipe(
    switchMap(() => forward(operation)),
  );
});

/** Sends the access token with each request, and sets it in the context again for each attempt. */
export const bearerLink = new SetContextLink(async ({ anonymous = false }, { client }) => {
  const accessToken = anonymous ? undefined : await currentAccessToken(client);
  return {
    accessToken,
    headers: accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` },
  };
});
