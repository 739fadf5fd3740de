import type {
  ApolloServerPlugin,
  GraphQLRequestContext,
  GraphQLRequestListener,
} from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';
import type { Context } from '../request/context.ts';
import { recordOf } from '../http/dependencies.ts';
import type { Operations } from '../telemetry/operations.ts';
import { recordErrors, type Operation } from '../telemetry/request-record.ts';
import { countedStatements } from '../telemetry/statement-count.ts';
import { Cost } from './cost.ts';
import { requestError } from './errors.ts';

/** Name and cost of an operation, computed once while its document is cached. */
interface Facts {
  named: Operation;
  cost: Cost;
}

/**
 * Adds the operation, the user and the error codes to the request record. Rejects subscriptions,
 * with an error that names their transports, and operations that cost more than GRAPHQL_MAX_COST.
 * Adds what a request asks for by `"extensions": {"cost": true, "statements": true}`: the cost of
 * the operation with its limit, and the number of database statements if they are counted.
 */
export function operationPlugin(
  operations: Operations,
  maxCost: number,
): ApolloServerPlugin<Context> {
  const known = new WeakMap<OperationDefinitionNode, Facts>();
  const listener: GraphQLRequestListener<Context> = {
    didResolveOperation: async ({ schema, document, operation, request, contextValue }) => {
      // Execution rejects a request without an operation.
      if (!operation) return;
      let facts = known.get(operation);
      if (!facts) {
        const cost = new Cost(schema, document, operation, maxCost);
        known.set(operation, (facts = { named: operations.of(operation), cost }));
      }
      const record = recordOf(contextValue);
      if (record) record.operation = facts.named;
      if (operation.operation === OperationTypeNode.SUBSCRIPTION) throw subscriptionError();
      const error = facts.cost.errorFor(request.variables ?? {});
      if (error) throw requestError(error);
    },
    willSendResponse: async (request) => {
      const { contextValue, response, operation } = request;
      const record = recordOf(contextValue);
      if (response.body.kind !== 'single' || !record) return;
      const { singleResult } = response.body;
      const user = contextValue.caller?.username;
      if (user !== undefined) record.user = user;
      if (singleResult.errors) recordErrors(record, singleResult.errors);
      const facts = operation && known.get(operation);
      if (facts && request.request.extensions)
        Object.assign(singleResult, extensionsOf(request, operation, facts, maxCost));
    },
  };
  return { requestDidStart: async () => listener };
}

/** Returns whether the body of a request has `"extensions": {"statements": true}`. */
export function wantsStatements(body: unknown): boolean {
  const { extensions } = (body ?? {}) as { extensions?: { statements?: unknown } | null };
  return extensions?.statements === true;
}

function extensionsOf(
  { schema, request: { extensions = {}, variables = {} } }: GraphQLRequestContext<Context>,
  operation: OperationDefinitionNode,
  { cost }: Facts,
  limit: number,
): { extensions?: object } {
  const statements = checksSecret(schema, operation) ? undefined : countedStatements();
  const added = {
    ...(statements !== undefined && { statements }),
    ...(extensions['cost'] === true && {
      cost: { requested: requestedCost(cost, variables), limit },
    }),
  };
  return Object.keys(added).length > 0 ? { extensions: added } : {};
}

function requestedCost(cost: Cost, variables: Readonly<Record<string, unknown>>): number | null {
  try {
    return cost.of(variables) ?? null;
  } catch {
    return null;
  }
}

// The number of statements would show whether a guessed username exists.
function checksSecret(
  schema: GraphQLSchema,
  { operation, selectionSet: { selections } }: OperationDefinitionNode,
): boolean {
  if (operation !== OperationTypeNode.MUTATION) return false;
  const fields = schema.getMutationType()?.getFields();
  return selections.some(
    (part) =>
      part.kind !== Kind.FIELD ||
      fields?.[part.name.value]?.extensions[ONCE_PER_OPERATION] === true,
  );
}

function subscriptionError(): GraphQLError {
  return new GraphQLError(
    'Subscriptions need server-sent events (Accept: text/event-stream) or a WebSocket',
    { extensions: { code: ApolloServerErrorCode.BAD_REQUEST, http: { status: 400 } } },
  );
}
