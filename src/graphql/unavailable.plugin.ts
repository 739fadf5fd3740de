import type { ApolloServerPlugin } from '@apollo/server';
import { Kind, OperationTypeNode, type OperationDefinitionNode } from 'graphql';
import type { Context } from '../request/context.ts';

/** Refusals that pass, which are 503 where they leave nothing to answer. */
const PASSING = new Set<unknown>(['UNAVAILABLE', 'TIMEOUT']);

/**
 * Answers an operation that could read nothing because the database is not there as the whole request is answered then: 503 with
 * `Retry-After`, so that whoever looks no further than the status asks again. What could be read in part is answered.
 */
export const unavailablePlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ response, operation }) => {
      const { body, http } = response;
      if (body.kind !== 'single') return;
      const { errors: [first, ...others] = [], data } = body.singleResult;
      if (!first || ![first, ...others].every(({ extensions }) => PASSING.has(extensions?.['code']))) return;
      if (operation && mayHaveDonePart(operation)) return;
      if (Object.values(data ?? {}).some((value) => value !== null)) return;
      const { message, extensions = {} } = first;
      http.status = 503;
      const { retryAfter } = extensions as { retryAfter?: number };
      http.headers.set('retry-after', String(retryAfter ?? 1));
      body.singleResult = { errors: [{ message, extensions }] };
    },
  }),
};

// Its fields run one after another, and what one has done stays done where the next is refused.
function mayHaveDonePart({ operation, selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return operation === OperationTypeNode.MUTATION && (selections.length > 1 || selections[0]?.kind !== Kind.FIELD);
}
