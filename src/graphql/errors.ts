import { randomUUID } from 'node:crypto';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { logUnavailable } from '../http/error-response.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import { HttpError, visibleError } from '../http/http-error.ts';
import type { Dependencies } from '../http/dependencies.ts';

/** Message that graphql-js adds, without a code, if there are more errors in variables. */
const TOO_MANY_VARIABLE_ERRORS =
  'Too many errors processing variables, error limit reached. Execution aborted.';

/** Maximum number of characters of an error message: graphql-js repeats the client's input. */
const MAX_MESSAGE = 1_000;
/** Start of the hint, at the end of a graphql-js message, that contains names of the schema. */
const HINT = ' Did you mean ';
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
  if (error instanceof HttpError)
    return new GraphQLError(error.message, {
      extensions: { code: ApolloServerErrorCode.BAD_REQUEST },
    });
  return new GraphQLError(originalError.message, { originalError });
}

/** Returns the error for a query that exceeds a limit. */
export function tooComplex(message: string): GraphQLError {
  return new GraphQLError(message, {
    originalError: new DomainError('QUERY_TOO_COMPLEX', message),
  });
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
  if (formatted.message === TOO_MANY_VARIABLE_ERRORS)
    return { ...formatted, extensions: { code: ApolloServerErrorCode.BAD_USER_INPUT } };
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'Resolver failed');
    const extensions = { code: 'INTERNAL_SERVER_ERROR', requestId };
    return { ...formatted, message: 'Internal server error', extensions };
  }
  const message = config.graphqlExplorer ? formatted.message : withoutHint(formatted.message);
  return { ...formatted, message: truncated(message) };
}

// Apollo Server's own helper does so only for errors with a path, which are those of resolvers.
function causeOf(error: unknown): unknown {
  return error instanceof GraphQLError ? (error.originalError ?? error) : error;
}

// Apollo Server would remove hints in time quadratic in the length of the input.
function withoutHint(message: string): string {
  const at = message.endsWith('?') ? message.lastIndexOf(HINT) : -1;
  return at < 0 ? message : message.slice(0, at);
}

function truncated(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
}
