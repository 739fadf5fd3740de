import { z } from 'zod';
import { DomainError, type FieldError, type RequestPart } from './errors.ts';

/** Maximum number of field errors in a response. The last one may say that others were omitted. */
const MAX_FIELD_ERRORS = 50;

/** The field error that replaces those above the maximum. */
const TOO_MANY_ERRORS: FieldError = {
  field: '',
  type: 'too_many_errors',
  message: 'Further errors omitted',
};

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Value of a field of a query string or form that is given more than once. */
const REPEATED = Symbol('repeated');

/** Returns the fields of a query string or form. No schema accepts a repeated field. */
export function withRepeated(
  fields: Iterable<readonly [string, unknown]>,
): Readonly<Record<string, unknown>> {
  const found: Record<string, unknown> = Object.create(null) as Record<string, never>;
  for (const [name, value] of fields) found[name] = name in found ? REPEATED : value;
  return found;
}

/** Returns the input parsed by the schema. Throws BAD_USER_INPUT with an entry for each error. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  part?: RequestPart,
): z.output<Schema> {
  const result = checked(schema, input, part);
  if (result instanceof DomainError) throw result;
  return result;
}

/** As `check`, but returns the error. */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  part?: RequestPart,
): z.output<Schema> | DomainError {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { issues } = result.error;
  const fields = issues.slice(0, MAX_FIELD_ERRORS).map((issue) => fieldError(issue, input));
  if (issues.length > MAX_FIELD_ERRORS) fields[MAX_FIELD_ERRORS - 1] = TOO_MANY_ERRORS;
  const summary = fields
    .map(({ field, message }) => (field ? `${field}: ${message}` : message))
    .join('; ');
  const placed = fields.map((field) => ({ ...field, ...(part && { part }) }));
  return new DomainError('BAD_USER_INPUT', summary, placed);
}

/** Returns the object without its undefined members. */
export function defined(values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Returns whether the text is a UUID in PostgreSQL's form: lower case, with hyphens. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Adds an issue with a machine-readable type to a zod transform or refinement. */
export function reject(ctx: z.core.$RefinementCtx, type: string, message: string): typeof z.NEVER {
  ctx.addIssue({ code: 'custom', message, params: { type } });
  return z.NEVER;
}

// Types and messages are those of the original services (docs/decisions.md, "REST"). The input is
// never echoed.
function fieldError(issue: z.core.$ZodIssue, input: unknown): FieldError {
  const [type, message] = describe(issue, valueAt(input, issue.path));
  return { field: issue.path.join('.'), type, message };
}

function describe(issue: z.core.$ZodIssue, value: unknown): [type: string, message: string] {
  switch (issue.code) {
    case 'invalid_type': {
      const expected = issue.expected === 'object' ? 'dictionary' : issue.expected;
      if (value === undefined) return ['missing', 'Field required'];
      if (value === REPEATED) return [`${expected}_type`, 'Parameter given twice'];
      return [`${expected}_type`, `Input should be a valid ${expected}`];
    }
    case 'too_small':
      return ['string_too_short', `String should have at least ${characters(issue.minimum)}`];
    case 'too_big':
      return ['string_too_long', `String should have at most ${characters(issue.maximum)}`];
    case 'custom':
      return [String(issue.params?.['type'] ?? 'value_error'), issue.message];
    case 'invalid_value':
      return ['value_error', issue.message];
    default:
      return ['value_error', 'Input is not valid'];
  }
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined,
    input,
  );
}

function characters(count: number | bigint): string {
  return `${count} character${count === 1 ? '' : 's'}`;
}
