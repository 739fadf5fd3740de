import { randomUUID } from 'node:crypto';
import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type ExecutionResult, type FormattedExecutionResult, type GraphQLFormattedError } from 'graphql';
import { DomainError } from '../../kit/errors.ts';
import { maskedError } from '../answers.ts';
import { graphqlExtensions } from '../error-map.ts';
import { visibleError } from '../http-error.ts';
import type { Services } from '../services.ts';
import { noteErrors, type Seen } from '../telemetry/seen.ts';
import { tellUnavailable } from '../unavailable.ts';

/** Errors of a subscription as `formatError` has them, and notes their codes. */
export function formatErrors(services: Services, errors: readonly GraphQLError[], seen: Seen): GraphQLFormattedError[] {
  const told = errors.map((error) => {
    const { extensions, ...rest } = error.toJSON();
    const formatted = { ...rest, message: withoutHint(rest.message, services.config.explorer) };
    return formatError(services, { ...formatted, extensions: { code: 'INTERNAL_SERVER_ERROR', ...extensions } }, error);
  });
  noteErrors(seen, told);
  return told;
}

/** An answer to a subscription, with its errors as `formatErrors` has them. */
export function formatResult(
  services: Services,
  { data, errors }: { [Part in 'data' | 'errors']?: ExecutionResult[Part] | undefined },
  seen: Seen,
): FormattedExecutionResult {
  return { ...(errors && { errors: formatErrors(services, errors, seen) }), ...(data !== undefined && { data }) };
}

/** An error of GraphQL as its client sees it (docs/decisions.md, "GraphQL"): a refusal as it is, a fault of ours as an id in the log. */
export function formatError({ log, config }: Services, formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const original = causeOf(error);
  const seen = original === error ? undefined : visibleError(original);
  // What was given up is nobody's trouble any more.
  if (seen !== original && seen instanceof DomainError && seen.code === 'UNAVAILABLE') tellUnavailable(log, original);
  if (seen instanceof DomainError) return { ...formatted, message: seen.message, extensions: graphqlExtensions(seen) };
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
  const field = path === undefined ? variable : path.slice(1).replace(/\[(\d+)\]/g, '.$1');
  const message = withoutHint(cause, isExplorer)
    .replace(/^Expected type "\w+!?"\. /, '')
    .replace(/ cannot represent (a )?(\S+ )*value: .*$/s, ' cannot represent this value');
  return { ...formatted, message: `${field}: ${message}`, extensions: { ...formatted.extensions, fields: [{ field, message }] } };
}

// Apollo Server leaves such hints out of what validation says, but not out of what is said of variables.
function withoutHint(message: string, isExplorer: boolean): string {
  return isExplorer ? message : message.replace(/ Did you mean .*\?$/s, '');
}
