import type { ApolloServerPlugin } from '@apollo/server';
import { Kind, OperationTypeNode, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';
import type { Context } from '../request/context.ts';
import { countedStatements } from '../telemetry/statement-count.ts';
import { Cost } from './cost.ts';

/** Returns whether the body of a request has `"extensions": {"statements": true}`. */
export function wantsStatements(body: unknown): boolean {
  const { extensions } = (body ?? {}) as { extensions?: { statements?: unknown } | null };
  return extensions?.statements === true;
}

/**
 * Adds what a request asks for by `"extensions": {"cost": true, "statements": true}`: the cost of
 * the operation and its limit, and the number of database statements if they are counted.
 */
export function extensionsPlugin(limit: number): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async ({ request: { extensions } }) => {
      if (!extensions) return undefined;
      return {
        willSendResponse: async ({ schema, document, operation, request, response: { body } }) => {
          if (body.kind !== 'single' || !document || !operation) return;
          const { singleResult } = body;
          const statements = checksSecret(schema, operation) ? undefined : countedStatements();
          if (statements !== undefined)
            singleResult.extensions = { ...singleResult.extensions, statements };
          if (extensions['cost'] !== true) return;
          const cost = new Cost(schema, document, operation, limit);
          const requested = costOf(cost, request.variables ?? {});
          singleResult.extensions = { ...singleResult.extensions, cost: { requested, limit } };
        },
      };
    },
  };
}

function costOf(cost: Cost, variables: Readonly<Record<string, unknown>>): number | null {
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
