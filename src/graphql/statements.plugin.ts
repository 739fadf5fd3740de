import type { ApolloServerPlugin } from '@apollo/server';
import { Kind, OperationTypeNode, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';
import type { Context } from '../request/context.ts';
import { countedStatements } from '../telemetry/statement-count.ts';

/** Returns whether the body of a request has `"extensions": {"statements": true}`. */
export function wantsStatements(body: unknown): boolean {
  const { extensions } = (body ?? {}) as { extensions?: { statements?: unknown } | null };
  return extensions?.statements === true;
}

/** Returns the number of database statements in `extensions.statements`, if they are counted. */
export const statementsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ schema, operation, response: { body } }) => {
      const statements = countedStatements();
      if (
        statements === undefined ||
        body.kind !== 'single' ||
        !operation ||
        checksSecret(schema, operation)
      )
        return;
      body.singleResult.extensions = { ...body.singleResult.extensions, statements };
    },
  }),
};

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
