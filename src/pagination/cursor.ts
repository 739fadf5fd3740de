import { hash } from 'node:crypto';
import { badInput, type DomainError } from '../core/errors.ts';
import { isStorable } from '../core/text.ts';
import { isUuid } from '../core/validation.ts';

/** Kind of an order column's values; determines which values a cursor may contain. */
export type OrderKind = keyof typeof VALIDATORS;

/** A column of an order. */
export interface OrderColumn {
  property: string;
  kind: OrderKind;
}

/** A position in a list: the values of its order columns. */
export type Bound = readonly unknown[];

const isText = (value: unknown) => typeof value === 'string';

const VALIDATORS = {
  decimal: (value: unknown) => isText(value) && /^\d{1,12}(\.\d{1,2})?$/.test(value),
  pk: (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 1,
  rank: (value: unknown) => Number.isSafeInteger(value),
  // Up to 18 digits: no counter of a database reaches 64 bits.
  serial: (value: unknown) => isText(value) && /^[1-9]\d{0,17}$/.test(value),
  text: (value: unknown) => isText(value) && isStorable(value),
  time: isInstant,
  uuid: (value: unknown) => isText(value) && isUuid(value),
};

// Unlike PostgreSQL, JavaScript parses 30 February as 1 March and has a year 0.
function isInstant(value: unknown): boolean {
  const ms = isText(value) && /^(?!0000)\d{4}-/.test(value) ? Date.parse(value) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString() === value;
}

/** Returns whether a value of this kind can be in a cursor, so that it can be in a column. */
export function isValueOf(kind: OrderKind, value: unknown): boolean {
  return VALIDATORS[kind](value);
}

/** What identifies a list in its cursors. */
interface Identity {
  name: string;
  order: readonly OrderColumn[];
  descending?: boolean;
  filter?: unknown;
}

/** Fingerprints of lists without a filter, by their orders, names and directions. */
const fingerprints = new WeakMap<Identity['order'], Map<string, string>>();

/** Returns the fingerprint of a list, order and filter that its cursors contain. */
export function fingerprint({ name, order, descending = false, filter = null }: Identity): string {
  const known = fingerprints.get(order) ?? new Map<string, string>();
  let digest = filter === null ? known.get(`${name} ${descending}`) : undefined;
  if (digest === undefined) {
    const key = JSON.stringify([name, order.map(({ property }) => property), descending, filter]);
    digest = hash('sha256', key, 'base64url').slice(0, 8);
    if (filter === null) fingerprints.set(order, known.set(`${name} ${descending}`, digest));
  }
  return digest;
}

/** Returns the cursor of a position. */
export function writeCursor(digest: string, bound: Bound): string {
  return Buffer.from(JSON.stringify([digest, ...bound])).toString('base64url');
}

/**
 * Returns the position of a cursor. Clients can send any text, so a cursor that this list cannot
 * have written throws BAD_USER_INPUT for the argument, and none of its values reach SQL.
 */
export function readCursor(
  order: readonly OrderColumn[],
  digest: string,
  argument: string,
  cursor: string,
): Bound {
  const [cursorDigest, bound] = decode(cursor);
  const isValid =
    cursorDigest === digest &&
    bound.length === order.length &&
    order.every(({ kind }, index) => isValueOf(kind, bound[index])) &&
    writeCursor(digest, bound) === cursor;
  if (!isValid) throw invalidCursor(argument);
  return bound;
}

/** Returns the error for a cursor that this list cannot have written. */
export function invalidCursor(argument: string): DomainError {
  return badInput(argument, 'is not a cursor of this list, order and filter');
}

/** Returns the first value of a cursor if it is an integer. Does not validate the cursor. */
export function rankIn(cursor: string | null | undefined): number | undefined {
  const [, [rank]] = decode(cursor ?? '');
  return typeof rank === 'number' && Number.isSafeInteger(rank) ? rank : undefined;
}

function decode(cursor: string): [unknown, Bound] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parts)) return [parts[0], parts.slice(1)];
  } catch {
    // not JSON, so not a valid cursor
  }
  return [undefined, []];
}
