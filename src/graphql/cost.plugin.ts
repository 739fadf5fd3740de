import type { ApolloServerPlugin, GraphQLRequestContext } from '@apollo/server';
import type { Context } from '../request/context.ts';
import { Cost } from './cost.ts';
import { requestError } from './errors.ts';

/**
 * Refuses what costs more than GRAPHQL_MAX_COST before anything of it runs. A request with `"extensions": {"cost": true}` is told
 * the cost and the limit under `extensions.cost`.
 */
export function costPlugin(limit: number): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async () => ({
      didResolveOperation: async ({ schema, document, operation, request: { variables = {} } }) => {
        if (!operation) return;
        try {
          new Cost(schema, document, operation, limit).refuseDear(variables);
        } catch (error) {
          throw requestError(error);
        }
      },
      willSendResponse: async ({ schema, document, operation, request, response: { body } }) => {
        if (request.extensions?.['cost'] !== true || body.kind !== 'single' || !document || !operation) return;
        const requested = costOf(new Cost(schema, document, operation, limit), request.variables);
        body.singleResult.extensions = { ...body.singleResult.extensions, cost: { requested, limit } };
      },
    }),
  };
}

function costOf(cost: Cost, variables: GraphQLRequestContext<Context>['request']['variables']): number | null {
  try {
    return cost.of(variables ?? {}) ?? null;
  } catch {
    return null;
  }
}
