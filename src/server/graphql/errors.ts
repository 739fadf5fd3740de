import { randomUUID } from 'node:crypto';
import { ApolloServerErrorCode, unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../../kit/errors.ts';
import { maskedError } from '../answers.ts';
import { graphqlExtensions } from '../error-map.ts';
import { visibleError } from '../http-error.ts';
import type { Services } from '../services.ts';
import { noteErrors, type Seen } from '../telemetry/seen.ts';
import { tellUnavailable } from '../unavailable.ts';

/** What graphql-js says after the last of the errors in variables that it lists, without any code. */
const TOO_MANY_VARIABLE_ERRORS = 'Too many errors processing variables, error limit reached. Execution aborted.';

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
    const formatted = { ...rest, message: withoutHint(rest.message, services.config.explorer) };
    return formatError(services, { ...formatted, extensions: { code: 'INTERNAL_SERVER_ERROR', ...extensions } }, error);
  });
}

/** The same, with their codes noted for the observer. */
export function refusalsOf(services: Services, errors: readonly GraphQLError[], seen: Seen): GraphQLFormattedError[] {
  const told = formatErrors(services, errors);
  noteErrors(seen, told);
  return told;
}

/** An error of GraphQL as its client sees it (docs/decisions.md, "GraphQL"): a refusal as it is, a fault of ours as an id in the log. */
export function formatError({ log, config }: Services, formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const original = causeOf(error);
  const seen = original === error ? undefined : visibleError(original);
  // What was given up is nobody's trouble any more.
  if (seen !== original && seen instanceof DomainError && seen.code === 'UNAVAILABLE') tellUnavailable(log, original);
  if (seen instanceof DomainError) return { ...formatted, message: seen.message, extensions: graphqlExtensions(seen) };
  if (error instanceof GraphQLError && error.message === TOO_MANY_VARIABLE_ERRORS) {
    return { ...formatted, extensions: { code: ApolloServerErrorCode.BAD_USER_INPUT } };
  }
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'a resolver failed');
    return { ...formatted, ...maskedError(requestId) };
  }
  return namedVariable(formatted, error, config.explorer);
}

// Of what a resolver throws, Apollo Server unwraps the cause; of what a limit refuses (limits.ts), we do.
function causeOf(error: unknown): unknown {
  if (error instanceof GraphQLError && error.originalError instanceof DomainError) return error.originalError;
  return unwrapResolverError(error);
}

// What graphql-js says of a variable repeats its value. What is told is where the mistake is, and what it is.
function namedVariable(formatted: GraphQLFormattedError, error: unknown, isExplorer: boolean): GraphQLFormattedError {
  const cause = error instanceof GraphQLError ? error.originalError?.message : undefined;
  const [, variable] = /^Variable "\$(\w+)" got invalid value /.exec(formatted.message) ?? [];
  if (cause === undefined || variable === undefined || !formatted.message.endsWith(`; ${cause}`)) return formatted;
  // In the value, which comes before, every quotation mark is escaped.
  const [, path] = / at "\w+((?:\.\w+|\[\d+\])+)"$/.exec(formatted.message.slice(0, -cause.length - 2)) ?? [];
  // The variable names a field where it is no object of fields.
  const within = path?.startsWith('.') ? path.slice(1) : `${variable}${path ?? ''}`;
  const field = within.replace(/\[(\d+)\]/g, '.$1');
  const message = withoutHint(cause, isExplorer)
    .replace(/^Expected type "\w+!?"\. /, '')
    .replace(/ cannot represent (a )?(\S+ )*value: .*$/s, ' cannot represent this value');
  return { ...formatted, message: `${field}: ${message}`, extensions: { ...formatted.extensions, fields: [{ field, message }] } };
}

// Apollo Server leaves such hints out of what validation says, but not out of what is said of variables.
function withoutHint(message: string, isExplorer: boolean): string {
  return isExplorer ? message : message.replace(/ Did you mean .*\?$/s, '');
}
