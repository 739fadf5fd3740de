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
import { badInputs, MAX_FIELD_ERRORS, TOO_MANY_ERRORS } from '../core/validation.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import {
  fieldPath,
  withFieldError,
  truncated,
  parseValueError,
  parseVariableError,
  type VariableError,
} from './errors.ts';
import {
  withItemIndexes,
  findInputErrors,
  ruleOf,
  type LiteralError,
  type RefusedRequest,
} from './input-errors.ts';

const { BAD_USER_INPUT } = ApolloServerErrorCode;

/** Kinds of the nodes in graphql-js errors about an invalid or missing value. */
const LOCATED_KINDS: ReadonlySet<ASTNode['kind']> = new Set([
  Kind.OBJECT_FIELD,
  Kind.FIELD,
  Kind.DIRECTIVE,
]);

/** Error in a variable, with the name of its field. */
interface LocatedError extends VariableError {
  field: string;
}

/** Completes the errors of requests with invalid variables. */
export const inputErrorsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({
      schema,
      document,
      request,
      contextValue,
      errors: causes = [],
      response: { body },
    }) => {
      if (body.kind !== 'single' || body.singleResult.data !== undefined || !document) return;
      const { errors = [] } = body.singleResult;
      if (errors[0]?.extensions?.['code'] !== BAD_USER_INPUT) return;
      body.singleResult.errors = withInputErrors(
        {
          schema,
          document,
          now: contextValue.now(),
          operation: getOperationAST(document, request.operationName) ?? undefined,
          variables: request.variables ?? {},
        },
        causes,
        errors,
      );
    },
  }),
};

/**
 * Completes the input errors of graphql-js, such as a missing field: adds the field of each error,
 * and the errors that the services' rules find in the same request, which does not reach the
 * services.
 */
export function withInputErrors(
  request: Omit<RefusedRequest, 'literals' | 'variableErrors'>,
  causes: readonly GraphQLError[],
  errors: readonly GraphQLFormattedError[],
): readonly GraphQLFormattedError[] {
  const { schema, operation, variables } = request;
  const literals = operation ? [] : causes.map(literalErrorOf);
  const variableErrors = operation ? locateVariableErrors(schema, causes, variables) : [];
  const remaining = MAX_FIELD_ERRORS - errors.length;
  const inputErrors = findInputErrors(
    {
      ...request,
      literals: literals.filter((error) => error !== undefined),
      variableErrors: Map.groupBy(
        variableErrors.filter((error) => error !== undefined),
        ({ variable }) => variable,
      ),
    },
    // One more shows whether there are further errors.
    remaining > 0 ? remaining + 1 : 0,
  );
  const located = errors.map((error, index) =>
    operation
      ? withServiceField(error, variableErrors[index])
      : withField(error, literals[index]?.field),
  );
  const fields =
    inputErrors.length > remaining
      ? [...inputErrors.slice(0, Math.max(0, remaining - 1)), TOO_MANY_ERRORS].slice(0, remaining)
      : inputErrors;
  if (fields.length === 0) return located;
  const inputError = badInputs(fields);
  return [...located, { message: inputError.message, extensions: graphqlExtensions(inputError) }];
}

function literalErrorOf({ message, nodes: [node] = [] }: GraphQLError): LiteralError | undefined {
  if (!node || node.kind === Kind.VARIABLE || !(isValueNode(node) || LOCATED_KINDS.has(node.kind)))
    return undefined;
  // For an unknown field, the node is the field itself.
  return {
    node,
    member: node.kind === Kind.OBJECT_FIELD ? undefined : parseValueError(message).member,
  };
}

/** Returns the errors in variables, with their fields named as by the services. */
function locateVariableErrors(
  schema: GraphQLSchema,
  causes: readonly GraphQLError[],
  variables: Record<string, unknown>,
): (LocatedError | undefined)[] {
  return causes.map((cause) => {
    const error = parseVariableError(cause);
    const [definition] = cause.nodes ?? [];
    const type =
      definition?.kind === Kind.VARIABLE_DEFINITION
        ? typeFromAST(schema, definition.type)
        : undefined;
    if (!error || !isInputType(type)) return undefined;
    const path = withItemIndexes(type, variables[error.variable], error.path);
    return { ...error, path, field: fieldPath(error.variable, path, ruleOf(type)?.under) };
  });
}

function withField(error: GraphQLFormattedError, field: string | undefined): GraphQLFormattedError {
  if (field === undefined) return error;
  return withFieldError(error, field, parseValueError(error.message).message);
}

function withServiceField(
  error: GraphQLFormattedError,
  variableError: LocatedError | undefined,
): GraphQLFormattedError {
  const [fieldError] = (error.extensions?.['fields'] ?? []) as { message: string }[];
  if (!variableError || !fieldError) return error;
  return withFieldError(
    variableError.isAbsent
      ? error
      : { ...error, message: truncated(`${variableError.field}: ${fieldError.message}`) },
    variableError.field,
    fieldError.message,
  );
}
