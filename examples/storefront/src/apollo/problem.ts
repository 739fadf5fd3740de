import { CombinedGraphQLErrors, ServerError } from '@apollo/client/errors';

/** Why a request failed, in words to show. */
export interface Problem {
  /** `extensions.code` of the first error; NETWORK where no answer came. */
  code: string;
  message: string;
  /** What is wrong with single fields of a form, by their names. */
  fields: ReadonlyMap<string, string>;
}

interface GraphQLProblem {
  message: string;
  extensions: Record<string, unknown>;
}

/** What went wrong, of anything that a request to the shop may throw. */
export function problemOf(error: unknown): Problem {
  const errors = errorsOf(error);
  const [first] = errors;
  const code = first ? textOf(first.extensions['code']) : 'NETWORK';
  return { code, message: wordsFor(code, first), fields: new Map(errors.flatMap(fieldsOf)) };
}

/** Whether it is worth asking again in a moment. */
export function isPassing({ code }: Problem): boolean {
  return code === 'NETWORK' || code === 'UNAVAILABLE' || code === 'TIMEOUT';
}

// What a proxy answers in place of the shop has a status and no errors.
function errorsOf(error: unknown): GraphQLProblem[] {
  if (CombinedGraphQLErrors.is(error)) return error.errors.flatMap(readError);
  if (!ServerError.is(error)) return [];
  return [{ message: '', extensions: { code: error.statusCode === 503 ? 'UNAVAILABLE' : 'INTERNAL_SERVER_ERROR' } }];
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

function wordsFor(code: string, error?: GraphQLProblem): string {
  switch (code) {
    case 'NETWORK':
      return 'The shop cannot be reached. Check your connection, then try again.';
    case 'UNAVAILABLE':
    case 'TIMEOUT':
      return 'The shop is very busy. Try again in a moment.';
    case 'RATE_LIMITED':
      return `Too many attempts. Try again in ${waitOf(error?.extensions['retryAfter'])}.`;
    case 'UNAUTHENTICATED':
      return 'Sign in to go on.';
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
