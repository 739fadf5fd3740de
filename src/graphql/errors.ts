import { randomUUID } from 'node:crypto';
import { ApolloServerErrorCode, unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { maskedError } from '../http/responses.ts';
import { graphqlExtensions } from '../http/error-map.ts';
import { visibleError } from '../http/http-error.ts';
import type { Services } from '../http/dependencies.ts';
import { noteErrors, type Seen } from '../telemetry/request-record.ts';
import { tellUnavailable } from '../http/log-unavailable.ts';

/** What graphql-js says after the last of the errors in variables that it lists, without any code. */
const TOO_MANY_VARIABLE_ERRORS = 'Too many errors processing variables, error limit reached. Execution aborted.';

/** Maximum number of characters of the message of an error: graphql-js repeats what the client has sent. */
const MAX_MESSAGE = 1_000;
/** What a hint of graphql-js at names of the schema begins with; it is the end of a message. */
const HINT = ' Did you mean ';
/** The words of REST for a field that is absent. */
const REQUIRED = 'Field required';

/** A mistake that graphql-js found in a value. */
export interface ValueFault {
  /** The member of the value that is wrong, where it is absent or unknown. */
  member?: string | undefined;
  message: string;
}

/** A mistake that graphql-js found in the value of a variable. */
export interface VariableFault {
  variable: string;
  path: readonly (string | number)[];
  message: string;
  /** Whether the variable has no value at all. */
  isAbsent?: boolean;
}

/** Returns a refusal of an operation before its execution: a request error (GraphQL, 7.1.2), whose status is 400. */
export function requestError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const originalError = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  return new GraphQLError(error.message, { originalError, extensions: { http: { status: 400 } } });
}

/** Errors that Apollo Server does not format as `formatError` has them. */
export function formatErrors(services: Services, errors: readonly GraphQLError[]): GraphQLFormattedError[] {
  return errors.map((error) => {
    const { extensions, ...rest } = error.toJSON();
    return formatError(services, { ...rest, extensions: { code: 'INTERNAL_SERVER_ERROR', ...extensions } }, error);
  });
}

/** The same, with their codes noted for the observer. */
export function refusalsOf(services: Services, errors: readonly GraphQLError[], seen: Seen): GraphQLFormattedError[] {
  const formatted = formatErrors(services, errors);
  noteErrors(seen, formatted);
  return formatted;
}

/** An error of GraphQL as its client sees it (docs/decisions.md, "GraphQL"): a refusal as it is, a fault of ours as an id in the log. */
export function formatError({ log, config }: Services, formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const original = causeOf(error);
  const seen = original === error ? undefined : visibleError(original);
  // What was given up is nobody's trouble any more.
  if (seen !== original && seen instanceof DomainError && seen.code === 'UNAVAILABLE') tellUnavailable(log, original);
  if (seen instanceof DomainError) return { ...formatted, message: shortened(seen.message), extensions: graphqlExtensions(seen) };
  if (error instanceof GraphQLError && error.message === TOO_MANY_VARIABLE_ERRORS) {
    return { ...formatted, extensions: { code: ApolloServerErrorCode.BAD_USER_INPUT } };
  }
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'a resolver failed');
    return { ...formatted, ...maskedError(requestId) };
  }
  const named = namedVariable(formatted, error, config.explorer);
  return { ...named, message: told(named.message, config.explorer) };
}

/** Returns the message of graphql-js as a client is told it: without hints at the schema where the explorer is off, and cut to its maximum length. */
export function told(message: string, isExplorer: boolean): string {
  return shortened(isExplorer ? message : withoutHint(message));
}

/** Cuts a message to its maximum length. */
export function shortened(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
}

// Of what a resolver throws, Apollo Server unwraps the cause; of what a limit refuses (limits.ts), we do.
function causeOf(error: unknown): unknown {
  if (error instanceof GraphQLError && error.originalError instanceof DomainError) return error.originalError;
  return unwrapResolverError(error);
}

// What graphql-js says of a variable repeats its value. What is told is where the mistake is, and what it is.
function namedVariable(formatted: GraphQLFormattedError, error: unknown, isExplorer: boolean): GraphQLFormattedError {
  const fault = error instanceof GraphQLError ? variableFault(error) : undefined;
  if (!fault) return formatted;
  const field = fieldAt(fault.variable, fault.path);
  const message = told(fault.message, isExplorer);
  return placed(fault.isAbsent ? formatted : { ...formatted, message: `${field}: ${message}` }, field, message);
}

/** Returns the error with the place of the mistake that it is about. */
export function placed(formatted: GraphQLFormattedError, field: string, message: string): GraphQLFormattedError {
  return { ...formatted, extensions: { ...formatted.extensions, fields: [{ field, message }] } };
}

/**
 * Returns the name of a field in a refusal: its path, below the name of the argument or variable where that is no object of fields, or
 * below what the services put before it.
 */
export function fieldAt(name: string, path: readonly (string | number)[], under?: string): string {
  const above = under ?? (typeof path[0] === 'string' ? undefined : name);
  return (above === undefined ? path : [above, ...path]).join('.');
}

/** Returns the mistake in a variable that the error is about, or undefined where it is about something else. */
export function variableFault({ message, originalError }: GraphQLError): VariableFault | undefined {
  const [, absent, state] =
    /^Variable "\$(\w+)" of (required|non-null) type "[^"]+" (?:was not provided|must not be null)\.$/.exec(message) ?? [];
  if (absent !== undefined)
    return { variable: absent, path: [], message: state === 'required' ? REQUIRED : 'must not be null', isAbsent: true };
  const [, variable] = /^Variable "\$(\w+)" got invalid value /.exec(message) ?? [];
  const cause = originalError?.message;
  if (cause === undefined || variable === undefined || !message.endsWith(`; ${cause}`)) return undefined;
  // In the value, which comes before, every quotation mark is escaped.
  const [, text = ''] = / at "\w+((?:\.\w+|\[\d+\])+)"$/.exec(message.slice(0, -cause.length - 2)) ?? [];
  const path = Array.from(text.matchAll(/\.(\w+)|\[(\d+)\]/g), ([, name, index]) => name ?? Number(index));
  const fault = valueFault(cause);
  return { variable, path: fault.member === undefined ? path : [...path, fault.member], message: fault.message };
}

/** Reads what graphql-js says of a value, without repeating the value. */
export function valueFault(message: string): ValueFault {
  const [, required] =
    /^Field "(?:\w+\.)?(\w+)" of required type "[^"]+" was not provided\.$/.exec(message) ??
    /^(?:Field|Directive) "@?\w+" argument "(\w+)" of type "[^"]+" is required, but it was not provided\.$/.exec(message) ??
    [];
  if (required !== undefined) return { member: required, message: REQUIRED };
  const [, unknown] = /^Field "(.+?)" is not defined by type "\w+"\./s.exec(message) ?? [];
  const shown = message
    .replace(/^Expected type "\w+!?"\. /, '')
    .replace(/^(\w+(?: "\w+")?) cannot represent (?:[\w-]+ ){0,4}value: .*$/s, '$1 cannot represent this value')
    .replace(/^(Expected value of type "[^"]+"), found .*$/s, '$1.');
  return { member: unknown, message: shown };
}

// Apollo Server would leave hints out of what validation says, in time that grows with the square of what the client has sent.
function withoutHint(message: string): string {
  const at = message.endsWith('?') ? message.lastIndexOf(HINT) : -1;
  return at < 0 ? message : message.slice(0, at);
}
