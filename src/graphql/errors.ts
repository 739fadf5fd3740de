import { randomUUID } from 'node:crypto';
import { ApolloServerErrorCode, unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { logUnavailable, maskedError } from '../http/responses.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import { visibleError } from '../http/http-error.ts';
import type { Dependencies } from '../http/dependencies.ts';
import { recordErrors, type RequestRecord } from '../telemetry/request-record.ts';

/** Message that graphql-js adds, without a code, if there are more errors in variables. */
const TOO_MANY_VARIABLE_ERRORS =
  'Too many errors processing variables, error limit reached. Execution aborted.';

/** Maximum number of characters of an error message: graphql-js repeats the client's input. */
const MAX_MESSAGE = 1_000;
/** Start of the hint, at the end of a graphql-js message, that contains names of the schema. */
const HINT = ' Did you mean ';
/** Message for a missing field, as in the REST API. */
const REQUIRED = 'Field required';

/** Error that graphql-js found in a value. */
export interface ValueError {
  /** The missing or unknown member of the value. */
  member?: string | undefined;
  message: string;
}

/** Error that graphql-js found in the value of a variable. */
export interface VariableError {
  variable: string;
  path: readonly (string | number)[];
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

/** Formats errors that do not pass through Apollo Server. `code` is that of errors without one. */
export function formatErrors(
  dependencies: Dependencies,
  errors: readonly GraphQLError[],
  code = 'INTERNAL_SERVER_ERROR',
): GraphQLFormattedError[] {
  return errors.map((error) => {
    const { extensions, ...rest } = error.toJSON();
    return formatError(dependencies, { ...rest, extensions: { code, ...extensions } }, error);
  });
}

/** Formats errors as `formatErrors`, and adds their codes to the request record. */
export function formatAndRecordErrors(
  dependencies: Dependencies,
  errors: readonly GraphQLError[],
  record: RequestRecord,
): GraphQLFormattedError[] {
  const formatted = formatErrors(dependencies, errors);
  recordErrors(record, formatted);
  return formatted;
}

/**
 * Formats an error for the client (docs/graphql.md). An internal error is logged, and
 * the client gets its id.
 */
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
  if (error instanceof GraphQLError && error.message === TOO_MANY_VARIABLE_ERRORS) {
    return { ...formatted, extensions: { code: ApolloServerErrorCode.BAD_USER_INPUT } };
  }
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'Resolver failed');
    return { ...formatted, ...maskedError(requestId) };
  }
  const located = withVariableField(formatted, error, config.graphqlExplorer);
  return { ...located, message: clientMessage(located.message, config.graphqlExplorer) };
}

/** Returns a graphql-js message truncated, and without schema hints if the explorer is off. */
function clientMessage(message: string, isExplorer: boolean): string {
  return truncated(isExplorer ? message : withoutHint(message));
}

/** Truncates a message to its maximum length. */
export function truncated(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
}

// Apollo Server unwraps the errors of resolvers, but not those of the limits (limits.ts).
function causeOf(error: unknown): unknown {
  if (error instanceof GraphQLError && error.originalError instanceof DomainError)
    return error.originalError;
  return unwrapResolverError(error);
}

// A graphql-js message about a variable repeats its value. Replaces it by the field and the error.
function withVariableField(
  formatted: GraphQLFormattedError,
  error: unknown,
  isExplorer: boolean,
): GraphQLFormattedError {
  const variableError = error instanceof GraphQLError ? parseVariableError(error) : undefined;
  if (!variableError) return formatted;
  const field = fieldPath(variableError.variable, variableError.path);
  const message = clientMessage(variableError.message, isExplorer);
  return withFieldError(
    variableError.isAbsent ? formatted : { ...formatted, message: `${field}: ${message}` },
    field,
    message,
  );
}

/** Returns the error with the field that it refers to. */
export function withFieldError(
  formatted: GraphQLFormattedError,
  field: string,
  message: string,
): GraphQLFormattedError {
  return { ...formatted, extensions: { ...formatted.extensions, fields: [{ field, message }] } };
}

/**
 * Returns the name of a field in an error: its path, prefixed by `under`, or by the argument or
 * variable if that is not an object.
 */
export function fieldPath(
  name: string,
  path: readonly (string | number)[],
  under?: string,
): string {
  const prefix = under ?? (typeof path[0] === 'string' ? undefined : name);
  return (prefix === undefined ? path : [prefix, ...path]).join('.');
}

/** Returns the variable's error that a graphql-js error describes; undefined for other errors. */
export function parseVariableError({
  message,
  originalError,
}: GraphQLError): VariableError | undefined {
  const [, absent, state] =
    /^Variable "\$(\w+)" of (required|non-null) type "[^"]+" (?:was not provided|must not be null)\.$/.exec(
      message,
    ) ?? [];
  if (absent !== undefined)
    return {
      variable: absent,
      path: [],
      message: state === 'required' ? REQUIRED : 'must not be null',
      isAbsent: true,
    };
  const [, variable] = /^Variable "\$(\w+)" got invalid value /.exec(message) ?? [];
  const cause = originalError?.message;
  if (cause === undefined || variable === undefined || !message.endsWith(`; ${cause}`))
    return undefined;
  // Quotation marks in the value, which precedes the path, are escaped.
  const [, text = ''] =
    / at "\w+((?:\.\w+|\[\d+\])+)"$/.exec(message.slice(0, -cause.length - 2)) ?? [];
  const path = Array.from(
    text.matchAll(/\.(\w+)|\[(\d+)\]/g),
    ([, name, index]) => name ?? Number(index),
  );
  const valueError = parseValueError(cause);
  return {
    variable,
    path: valueError.member === undefined ? path : [...path, valueError.member],
    message: valueError.message,
  };
}

/** Parses a graphql-js message about a value, and removes the value from it. */
export function parseValueError(message: string): ValueError {
  const [, required] =
    /^Field "(?:\w+\.)?(\w+)" of required type "[^"]+" was not provided\.$/.exec(message) ??
    /^(?:Field|Directive) "@?\w+" argument "(\w+)" of type "[^"]+" is required, but it was not provided\.$/.exec(
      message,
    ) ??
    [];
  if (required !== undefined) return { member: required, message: REQUIRED };
  const [, unknown] = /^Field "(.+?)" is not defined by type "\w+"\./s.exec(message) ?? [];
  const publicMessage = message
    .replace(/^Expected type "\w+!?"\. /, '')
    .replace(
      /^(\w+(?: "\w+")?) cannot represent (?:[\w-]+ ){0,4}value: .*$/s,
      '$1 cannot represent this value',
    )
    .replace(/^(Expected value of type "[^"]+"), found .*$/s, '$1.');
  return { member: unknown, message: publicMessage };
}

// Apollo Server would remove hints in time quadratic in the length of the input.
function withoutHint(message: string): string {
  const at = message.endsWith('?') ? message.lastIndexOf(HINT) : -1;
  return at < 0 ? message : message.slice(0, at);
}
