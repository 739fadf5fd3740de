import type { ApolloServerPlugin } from '@apollo/server';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { graphqlTypeFor, JSON_TYPE } from '../http/responses.ts';

const QUERY_ERRORS = new Set<unknown>([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'BAD_USER_INPUT',
  'OPERATION_RESOLUTION_FAILURE',
]);

/**
 * Returns 200 instead of 400 for an invalid query if the client accepts `application/json` without
 * a wildcard: for legacy clients, the status says only whether the server was reached (GraphQL over
 * HTTP, 6.4.1).
 */
export const httpStatusPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ request, response, errors }) => {
      if (response.http.status !== 400 || !isLegacy(request.http?.headers.get('accept'))) return;
      // Exceeded limits are not query errors in the sense of the specification.
      const isOfQuery = errors?.every(
        ({ extensions, originalError }) =>
          QUERY_ERRORS.has(extensions['code']) && !(originalError instanceof DomainError),
      );
      if (isOfQuery) response.http.status = 200;
    },
  }),
};

function isLegacy(accept: string | undefined): boolean {
  return (
    !!accept && !accept.includes('/*') && graphqlTypeFor({ headers: { accept } }) === JSON_TYPE
  );
}
