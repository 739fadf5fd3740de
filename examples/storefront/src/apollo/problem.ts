import { CombinedGraphQLErrors, ServerError } from '@apollo/client/errors';

/** Why a request failed, for the user. */
export interface Problem {
  /** `extensions.code` of the first error; NETWORK without a response. */
  code: string;
  message: string;
  /** Errors of fields of a form, by field name. */
  fields: ReadonlyMap<string, string>;
}

interface GraphQLProblem {
  message: string;
  extensions: Record<string, unknown>;
}

/** Converts any error of a request to the shop. */
export function problemOf(error: unknown): Problem {
  const errors = errorsOf(error);
  const [first] = errors;
  const code = first ? textOf(first.extensions['code']) : 'NETWORK';
  return { code, message: messageFor(code, first), fields: new Map(errors.flatMap(fieldsOf)) };
}

/** Whether a retry may succeed. */
export function isTransient({ code }: Problem): boolean {
  return code === 'NETWORK' || code === 'UNAVAILABLE' || code === 'TIMEOUT';
}

// A response of a proxy has a status, but no GraphQL errors.
function errorsOf(error: unknown): GraphQLProblem[] {
  if (CombinedGraphQLErrors.is(error)) return error.errors.flatMap(readError);
  if (!ServerError.is(error)) return [];
  return [
    {
      message: '',
      extensions: { code: error.statusCode === 503 ? 'UNAVAILABLE' : 'INTERNAL_SERVER_ERROR' },
    },
  ];
}

function readError(error: unknown): GraphQLProblem[] {
  if (!isRecord(error)) return [];
  const { message, extensions } = error;
  return [{ message: textOf(message), extensions: isRecord(extensions) ? extensions : {} }];
}

function fieldsOf({ extensions: { fields } }: GraphQLProblem): [string, string][] {
  if (!Array.isArray(fields)) return [];
  return fields.filter(isRecord).map(({ field, message }) => [textOf(field), textOf(message)]);
}

function messageFor(code: string, error?: GraphQLProblem): string {
  switch (code) {
    case 'NETWORK':
      return 'The shop cannot be reached. Check your connection, then try again.';
    case 'UNAVAILABLE':
    case 'TIMEOUT':
      return 'The shop is very busy. Try again in a moment.';
    case 'RATE_LIMITED':
      return `Too many attempts. Try again in ${waitOf(error?.extensions['retryAfter'])}.`;
    case 'UNAUTHENTICATED':
      return 'Sign in to continue.';
    case 'INTERNAL_SERVER_ERROR':
    case '':
      return 'Something went wrong in the shop. Try again in a moment.';
    default:
      return `${error?.message ?? ''}.`;
  }
}

function waitOf(seconds: unknown): string {
  if (typeof seconds !== 'number') return 'a few minutes';
  return seconds < 90 ? `${Math.ceil(seconds)} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
