import { z } from 'zod';
import { DomainError, type FieldError, type RequestPart } from './errors.ts';

/** Maximum number of mistakes that a refusal names. The last one says that there are others. */
export const MAX_MISTAKES = 50;

/** Returns the input as the schema reads it, or throws BAD_USER_INPUT with an entry for each mistake. */
export function check<Schema extends z.ZodType>(schema: Schema, input: unknown, part?: RequestPart): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const { issues } = result.error;
  const named = issues.slice(0, MAX_MISTAKES).map((issue) => fieldError(issue, input));
  if (issues.length > MAX_MISTAKES) named[MAX_MISTAKES - 1] = OTHERS;
  throw badInputs(named.map((fault) => ({ ...fault, ...(part && { part }) })));
}

/** The refusal of an input for these mistakes. */
export function badInputs(fields: readonly FieldError[]): DomainError {
  const summary = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message)).join('; ');
  return new DomainError('BAD_USER_INPUT', summary, fields);
}

/** Says that there are more mistakes than a refusal names. */
export const OTHERS: FieldError = { field: '', type: 'too_many_errors', message: 'There are more mistakes' };

/** The values that are there, without the members that are undefined. */
export function defined(values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Adds a refusal of the value at hand, with its type for programs, to a zod transform or refinement. */
export function refuse(ctx: z.core.$RefinementCtx, type: string, message: string): typeof z.NEVER {
  ctx.addIssue({ code: 'custom', message, params: { type } });
  return z.NEVER;
}

// The words are those that clients of the original services know (docs/decisions.md, "Malformed bodies"). The input is never echoed.
function fieldError(issue: z.core.$ZodIssue, input: unknown): FieldError {
  const field = issue.path.join('.');
  switch (issue.code) {
    case 'invalid_type':
      return valueAt(input, issue.path) === undefined
        ? { field, type: 'missing', message: 'Field required' }
        : { field, type: `${typeName(issue.expected)}_type`, message: `Input should be a valid ${typeName(issue.expected)}` };
    case 'too_small':
      return { field, type: 'string_too_short', message: `String should have at least ${plural(issue.minimum, 'character')}` };
    case 'too_big':
      return { field, type: 'string_too_long', message: `String should have at most ${plural(issue.maximum, 'character')}` };
    case 'invalid_value':
      return { field, type: 'value_error', message: issue.message };
    case 'custom':
      return { field, type: String(issue.params?.['type'] ?? 'value_error'), message: issue.message };
    default:
      return { field, type: 'value_error', message: 'Input is not valid' };
  }
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined), input);
}

function typeName(expected: string): string {
  return expected === 'object' ? 'dictionary' : expected;
}

function plural(count: number | bigint, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
