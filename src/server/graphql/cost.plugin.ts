import type { ApolloServerPlugin, GraphQLRequestContext } from '@apollo/server';
import { GraphQLError } from 'graphql';
import type { Context } from '../../kit/context.ts';
import { Cost } from './cost.ts';

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
          throw refused(error);
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

// A refusal before the run is a request error (GraphQL, 7.1.2), whose status is 400.
function refused(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const originalError = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  return new GraphQLError(error.message, { originalError, extensions: { http: { status: 400 } } });
}

function costOf(cost: Cost, variables: GraphQLRequestContext<Context>['request']['variables']): number | null {
  try {
    return cost.of(variables ?? {}) ?? null;
  } catch {
    return null;
  }
}
