import type { ApolloServerPlugin } from '@apollo/server';
import { Kind, OperationTypeNode, type OperationDefinitionNode } from 'graphql';
import type { Context } from '../request/context.ts';

/** Transient errors. The response is 503 if they leave no data. */
const TRANSIENT = new Set<unknown>(['UNAVAILABLE', 'TIMEOUT']);

/**
 * Returns 503 with `Retry-After` for an operation that read nothing because the database is
 * unavailable, so that clients that only check the status retry. Partial data is returned.
 */
export const unavailablePlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ response, operation, contextValue: { log, request } }) => {
      const { body, http } = response;
      if (body.kind !== 'single') return;
      const { errors: [first, ...others] = [], data } = body.singleResult;
      if (
        !first ||
        ![first, ...others].every(({ extensions }) => TRANSIENT.has(extensions?.['code']))
      )
        return;
      if (operation && mayHavePartialEffects(operation)) return;
      if (Object.values(data ?? {}).some((value) => value !== null)) return;
      const { message, extensions = {} } = first;
      // At its own time limit, a statement ends shortly before or after its request.
      if (extensions['code'] === 'TIMEOUT' && request?.signal.aborted !== true)
        log.warn({ event: 'request.timeout' }, 'Request timed out');
      http.status = 503;
      const { retryAfter } = extensions as { retryAfter?: number };
      http.headers.set('retry-after', String(retryAfter ?? 1));
      body.singleResult = { errors: [{ message, extensions }] };
    },
  }),
};

// The fields of a mutation run one after another. An error does not roll back the previous fields.
function mayHavePartialEffects({
  operation,
  selectionSet: { selections },
}: OperationDefinitionNode): boolean {
  return (
    operation === OperationTypeNode.MUTATION &&
    (selections.length > 1 || selections[0]?.kind !== Kind.FIELD)
  );
}
