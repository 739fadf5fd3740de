import type { ApolloServerPlugin } from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  getOperationAST,
  isInputType,
  isValueNode,
  Kind,
  typeFromAST,
  type ASTNode,
  type GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import type { Context } from '../request/context.ts';
import { badInputs, MAX_MISTAKES, OTHERS } from '../core/validation.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import { fieldAt, placed, shortened, valueFault, variableFault, type VariableFault } from './errors.ts';
import { indexed, inputFaults, ruleOf, type LiteralFault } from './input-errors.ts';

const { BAD_USER_INPUT, GRAPHQL_VALIDATION_FAILED } = ApolloServerErrorCode;

/** The nodes that graphql-js names where it refuses a value, or that there is none. */
const PLACES: ReadonlySet<ASTNode['kind']> = new Set([Kind.OBJECT_FIELD, Kind.FIELD, Kind.DIRECTIVE]);

/** A mistake in a variable, and the name of its field. */
interface PlacedFault extends VariableFault {
  field: string;
}

/**
 * Completes a refusal by graphql-js, such as one of a missing field: adds the places of the mistakes, and the mistakes that the rules of
 * the services find in the same request, which does not reach the services. The refusal of a document is the same whatever its variables are (refused-documents.ts).
 */
export const scalarFaultsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ schema, document, request, contextValue, errors: causes = [], response: { body } }) => {
      if (body.kind !== 'single' || body.singleResult.data !== undefined || !document) return;
      const { errors = [] } = body.singleResult;
      const code = errors[0]?.extensions?.['code'];
      if (code !== BAD_USER_INPUT && code !== GRAPHQL_VALIDATION_FAILED) return;
      const operation = code === BAD_USER_INPUT ? (getOperationAST(document, request.operationName) ?? undefined) : undefined;
      const variables = request.variables ?? {};
      const literals = operation ? [] : causes.map(literalFault);
      const inVariables = operation ? variableFaults(schema, causes, variables) : [];
      const room = MAX_MISTAKES - errors.length;
      const found = inputFaults(
        {
          schema,
          document,
          now: contextValue.now(),
          literals: literals.filter((fault) => fault !== undefined),
          operation,
          variables,
          refusedIn: Map.groupBy(
            inVariables.filter((fault) => fault !== undefined),
            ({ variable }) => variable,
          ),
        },
        // One more tells whether there are others.
        room > 0 ? room + 1 : 0,
      );
      const told = errors.map((error, index) =>
        operation ? asServicesName(error, inVariables[index]) : withField(error, literals[index]?.field),
      );
      const fields = found.length > room ? [...found.slice(0, Math.max(0, room - 1)), OTHERS].slice(0, room) : found;
      const refusal = badInputs(fields);
      body.singleResult.errors = fields.length > 0 ? [...told, { message: refusal.message, extensions: graphqlExtensions(refusal) }] : told;
    },
  }),
};

function literalFault({ message, nodes: [node] = [] }: GraphQLError): LiteralFault | undefined {
  if (!node || node.kind === Kind.VARIABLE || !(isValueNode(node) || PLACES.has(node.kind))) return undefined;
  // An unknown field is a node of its own.
  return { node, member: node.kind === Kind.OBJECT_FIELD ? undefined : valueFault(message).member };
}

/** Returns the mistakes in variables, with their places as the services would have them. */
function variableFaults(
  schema: GraphQLSchema,
  causes: readonly GraphQLError[],
  variables: Record<string, unknown>,
): (PlacedFault | undefined)[] {
  return causes.map((cause) => {
    const fault = variableFault(cause);
    const [definition] = cause.nodes ?? [];
    const type = definition?.kind === Kind.VARIABLE_DEFINITION ? typeFromAST(schema, definition.type) : undefined;
    if (!fault || !isInputType(type)) return undefined;
    const path = indexed(type, variables[fault.variable], fault.path);
    return { ...fault, path, field: fieldAt(fault.variable, path, ruleOf(type)?.under) };
  });
}

function withField(error: GraphQLFormattedError, field: string | undefined): GraphQLFormattedError {
  if (field === undefined) return error;
  return placed(error, field, valueFault(error.message).message);
}

function asServicesName(error: GraphQLFormattedError, fault: PlacedFault | undefined): GraphQLFormattedError {
  const [told] = (error.extensions?.['fields'] ?? []) as { message: string }[];
  if (!fault || !told) return error;
  return placed(fault.isAbsent ? error : { ...error, message: shortened(`${fault.field}: ${told.message}`) }, fault.field, told.message);
}
