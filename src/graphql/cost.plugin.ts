import type { ApolloServerPlugin, GraphQLRequestContext } from '@apollo/server';
import type { Context } from '../request/context.ts';
import { Cost } from './cost.ts';
import { requestError } from './errors.ts';

/**
 * Rejects operations that cost more than GRAPHQL_MAX_COST before they run. For a request with
 * `"extensions": {"cost": true}`, returns the cost and the limit in `extensions.cost`.
 */
export function costPlugin(limit: number): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async () => ({
      didResolveOperation: async ({ schema, document, operation, request: { variables = {} } }) => {
        if (!operation) return;
        const error = new Cost(schema, document, operation, limit).errorFor(variables);
        if (error) throw requestError(error);
      },
      willSendResponse: async ({ schema, document, operation, request, response: { body } }) => {
        if (
          request.extensions?.['cost'] !== true ||
          body.kind !== 'single' ||
          !document ||
          !operation
        )
          return;
        const requested = costOf(new Cost(schema, document, operation, limit), request.variables);
        body.singleResult.extensions = {
          ...body.singleResult.extensions,
          cost: { requested, limit },
        };
      },
    }),
  };
}

function costOf(
  cost: Cost,
  variables: GraphQLRequestContext<Context>['request']['variables'],
): number | null {
  try {
    return cost.of(variables ?? {}) ?? null;
  } catch {
    return null;
  }
}
