import type { ApolloServerPlugin, GraphQLRequestListener } from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, OperationTypeNode, type OperationDefinitionNode } from 'graphql';
import type { Context } from '../request/context.ts';
import { recordOf } from '../http/dependencies.ts';
import type { Operations } from '../telemetry/operations.ts';
import { recordErrors, type Operation } from '../telemetry/request-record.ts';
import { Cost } from './cost.ts';
import { requestError } from './errors.ts';

/**
 * Adds the operation, the user and the error codes to the request record. Rejects subscriptions,
 * with an error that names their transports, and operations that cost more than GRAPHQL_MAX_COST.
 */
export function operationPlugin(
  operations: Operations,
  maxCost: number,
): ApolloServerPlugin<Context> {
  // Lives as long as the document store keeps the document.
  const known = new WeakMap<OperationDefinitionNode, { record: Operation; cost: Cost }>();
  const listener: GraphQLRequestListener<Context> = {
    didResolveOperation: async ({ schema, document, operation, request, contextValue }) => {
      // Execution rejects a request without an operation.
      if (!operation) return;
      let facts = known.get(operation);
      if (!facts) {
        const cost = new Cost(schema, document, operation, maxCost);
        known.set(operation, (facts = { record: operations.of(operation), cost }));
      }
      const record = recordOf(contextValue);
      if (record) record.operation = facts.record;
      if (operation.operation === OperationTypeNode.SUBSCRIPTION) throw subscriptionError();
      const error = facts.cost.errorFor(request.variables ?? {});
      if (error) throw requestError(error);
    },
    willSendResponse: async ({ contextValue, response: { body } }) => {
      const record = recordOf(contextValue);
      if (!record) return;
      const user = contextValue.caller?.username;
      if (user !== undefined) record.user = user;
      if (body.kind === 'single' && body.singleResult.errors)
        recordErrors(record, body.singleResult.errors);
    },
  };
  return { requestDidStart: async () => listener };
}

function subscriptionError(): GraphQLError {
  return new GraphQLError(
    'Subscriptions need server-sent events (Accept: text/event-stream) or a WebSocket',
    { extensions: { code: ApolloServerErrorCode.BAD_REQUEST, http: { status: 400 } } },
  );
}
