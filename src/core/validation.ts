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
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { issues } = result.error;
  const fields = issues.slice(0, MAX_FIELD_ERRORS).map((issue) => fieldError(issue, input));
  if (issues.length > MAX_FIELD_ERRORS) fields[MAX_FIELD_ERRORS - 1] = TOO_MANY_ERRORS;
  throw badInputs(fields.map((field) => ({ ...field, ...(part && { part }) })));
}

function badInputs(fields: readonly FieldError[]): DomainError {
  const summary = fields
    .map(({ field, message }) => (field ? `${field}: ${message}` : message))
    .join('; ');
  return new DomainError('BAD_USER_INPUT', summary, fields);
}

/** Returns the object without its undefined members. */
export function defined(values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Adds an issue with a machine-readable type to a zod transform or refinement. */
export function reject(ctx: z.core.$RefinementCtx, type: string, message: string): typeof z.NEVER {
  ctx.addIssue({ code: 'custom', message, params: { type } });
  return z.NEVER;
}

// Types and messages are those of the original services (docs/decisions.md, "REST"). The input is
// never echoed.
function fieldError(issue: z.core.$ZodIssue, input: unknown): FieldError {
  const field = issue.path.join('.');
  switch (issue.code) {
    case 'invalid_type':
      return valueAt(input, issue.path) === undefined
        ? { field, type: 'missing', message: 'Field required' }
        : {
            field,
            type: `${typeName(issue.expected)}_type`,
            message:
              valueAt(input, issue.path) === REPEATED
                ? 'Parameter given twice'
                : `Input should be a valid ${typeName(issue.expected)}`,
          };
    case 'too_small':
      return {
        field,
        type: 'string_too_short',
        message: `String should have at least ${plural(issue.minimum, 'character')}`,
      };
    case 'too_big':
      return {
        field,
        type: 'string_too_long',
        message: `String should have at most ${plural(issue.maximum, 'character')}`,
      };
    case 'invalid_value':
      return { field, type: 'value_error', message: issue.message };
    case 'custom':
      return {
        field,
        type: String(issue.params?.['type'] ?? 'value_error'),
        message: issue.message,
      };
    default:
      return { field, type: 'value_error', message: 'Input is not valid' };
  }
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined,
    input,
  );
}

function typeName(expected: string): string {
  return expected === 'object' ? 'dictionary' : expected;
}

function plural(count: number | bigint, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
