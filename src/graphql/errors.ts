import { randomUUID } from 'node:crypto';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { logUnavailable, maskedError } from '../http/responses.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import { visibleError } from '../http/http-error.ts';
import type { Dependencies } from '../http/dependencies.ts';

/** Message that graphql-js adds, without a code, if there are more errors in variables. */
const TOO_MANY_VARIABLE_ERRORS =
  'Too many errors processing variables, error limit reached. Execution aborted.';

/** Maximum number of characters of an error message: graphql-js repeats the client's input. */
const MAX_MESSAGE = 1_000;
/** Start of the hint, at the end of a graphql-js message, that contains names of the schema. */
const HINT = ' Did you mean ';
/** Message for a missing field, as in the REST API. */
const REQUIRED = 'Field required';

/** Error that graphql-js found in a variable. The message does not contain the value. */
interface VariableError {
  field: string;
  message: string;
  /** Whether the variable has no value at all. */
  isAbsent?: boolean;
}

/** Returns a request error (GraphQL, 7.1.2), with status 400, for an error before execution. */
export function requestError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const originalError = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  return new GraphQLError(error.message, { originalError, extensions: { http: { status: 400 } } });
}

/** Returns the error as a GraphQL error. */
export function graphqlErrorOf(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  const originalError = error instanceof Error ? error : new Error(String(error));
  return new GraphQLError(originalError.message, { originalError });
}

/** Formats errors that do not pass through Apollo Server. */
export function formatErrors(
  dependencies: Dependencies,
  errors: readonly GraphQLError[],
): GraphQLFormattedError[] {
  const { INTERNAL_SERVER_ERROR: code } = ApolloServerErrorCode;
  return errors.map((error) => {
    const { extensions, ...rest } = error.toJSON();
    return formatError(dependencies, { ...rest, extensions: { code, ...extensions } }, error);
  });
}

/** Formats an error for the client. Logs an internal error, and replaces it by its id. */
export function formatError(
  { log, config }: Dependencies,
  formatted: GraphQLFormattedError,
  error: unknown,
): GraphQLFormattedError {
  const original = causeOf(error);
  const visible = original === error ? undefined : visibleError(original);
  // Cancelled work (TIMEOUT) is not logged.
  if (visible !== original && visible instanceof DomainError && visible.code === 'UNAVAILABLE')
    logUnavailable(log, original);
  if (visible instanceof DomainError)
    return {
      ...formatted,
      message: truncated(visible.message),
      extensions: graphqlExtensions(visible),
    };
  if (error instanceof GraphQLError && error.message === TOO_MANY_VARIABLE_ERRORS)
    return { ...formatted, extensions: { code: ApolloServerErrorCode.BAD_USER_INPUT } };
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'Resolver failed');
    return { ...formatted, ...maskedError(requestId) };
  }
  const toClient = (text: string) => truncated(config.graphqlExplorer ? text : withoutHint(text));
  const found = error instanceof GraphQLError ? variableErrorOf(error) : undefined;
  if (!found) return { ...formatted, message: toClient(formatted.message) };
  const { field, isAbsent } = found;
  const message = toClient(found.message);
  return {
    ...formatted,
    message: toClient(isAbsent ? formatted.message : `${field}: ${message}`),
    extensions: { ...formatted.extensions, fields: [{ field, message }] },
  };
}

// Apollo Server's own helper does so only for errors with a path, which are those of resolvers.
function causeOf(error: unknown): unknown {
  return error instanceof GraphQLError ? (error.originalError ?? error) : error;
}

/**
 * Returns the error that graphql-js found in a variable; undefined for other errors. The field is the
 * path in the variable, or begins with the variable's name if that is not an object.
 */
function variableErrorOf({ message, originalError }: GraphQLError): VariableError | undefined {
  const [, variable = '', absent] =
    /^Variable "\$(\w+)" (?:got invalid value |of (required|non-null) type )/.exec(message) ?? [];
  if (absent !== undefined) {
    const text = absent === 'required' ? REQUIRED : 'must not be null';
    return { field: variable, message: text, isAbsent: true };
  }
  if (variable === '' || !originalError) return undefined;
  const { message: cause } = originalError;
  // Quotation marks in the value, which precedes the path, are escaped.
  const [, path = ''] =
    / at "\w+((?:\.\w+|\[\d+\])+)"$/.exec(message.slice(0, -cause.length - 2)) ?? [];
  const [, required, unknown] =
    /^Field "(?:(\w+)" of required type "[^"]+" was not provided\.$|(.+?)" is not defined by type "\w+"\.)/s.exec(
      cause,
    ) ?? [];
  const member = required ?? unknown;
  const full = path.replace(/\[(\d+)\]/g, '.$1') + (member === undefined ? '' : `.${member}`);
  return {
    field: full === '' || path.startsWith('[') ? variable + full : full.slice(1),
    message:
      required === undefined
        ? cause.replace(/^(\w+(?: "\w+")? cannot represent )[\w -]*value: .*$/s, '$1this value')
        : REQUIRED,
  };
}

// Apollo Server would remove hints in time quadratic in the length of the input.
function withoutHint(message: string): string {
  const at = message.endsWith('?') ? message.lastIndexOf(HINT) : -1;
  return at < 0 ? message : message.slice(0, at);
}

function truncated(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
}
