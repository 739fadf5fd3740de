import { createHash } from 'node:crypto';
import { badInput, type DomainError } from '../core/errors.ts';
import { readPk } from '../core/pk.ts';
import { readTime } from '../database/sql.ts';
import { isStorable } from '../core/text.ts';
import { isUuid } from '../core/uuid.ts';

/** Kind of an order column's values; determines which values a cursor may contain. */
export type OrderKind =
  'decimal' | 'pk' | 'rank' | 'serial' | 'text' | 'time' | 'transaction' | 'uuid';

/** A column of an order. */
export interface OrderColumn {
  property: string;
  kind: OrderKind;
}

/** A position in a list: the values of its order columns. */
export type Bound = readonly unknown[];

/** SQL type of a kind, conversion of PostgreSQL's text to the cursor's value, and validation. */
interface ValueType {
  sqlType: string;
  read(cell: unknown): unknown;
  isValid(value: unknown): boolean;
}

const identity = (cell: unknown): unknown => cell;
const VALUE_TYPES: Record<OrderKind, ValueType> = {
  decimal: {
    sqlType: 'numeric',
    read: identity,
    isValid: (value) => typeof value === 'string' && /^\d{1,12}(\.\d{1,2})?$/.test(value),
  },
  pk: {
    sqlType: 'bigint',
    read: Number,
    isValid: (value) => typeof value === 'number' && readPk(String(value)) !== undefined,
  },
  rank: { sqlType: 'integer', read: Number, isValid: (value) => Number.isSafeInteger(value) },
  serial: { sqlType: 'bigint', read: identity, isValid: isPositiveInteger },
  text: {
    sqlType: 'text',
    read: identity,
    isValid: (value) => typeof value === 'string' && isStorable(value),
  },
  time: {
    sqlType: 'timestamptz',
    read: (cell) => readTime(cell).toISOString(),
    isValid: isInstant,
  },
  transaction: { sqlType: 'xid8', read: identity, isValid: isPositiveInteger },
  uuid: {
    sqlType: 'uuid',
    read: identity,
    isValid: (value) => typeof value === 'string' && isUuid(value),
  },
};

// Unlike PostgreSQL, JavaScript parses 30 February as 1 March and has a year 0.
function isInstant(value: unknown): boolean {
  if (typeof value !== 'string' || !/^(?!0000)\d{4}-/.test(value)) return false;
  const time = new Date(value);
  return !Number.isNaN(time.getTime()) && time.toISOString() === value;
}

// Up to 18 digits: no counter of a database reaches 64 bits.
function isPositiveInteger(value: unknown): boolean {
  return typeof value === 'string' && /^[1-9]\d{0,17}$/.test(value);
}

/** Returns the SQL type of an order column. */
export function sqlTypeOf(kind: OrderKind): string {
  return VALUE_TYPES[kind].sqlType;
}

// Only lists without a filter are cached: their number is limited, that of filters is not.
const fingerprints = new Map<string, string>();

/** Returns the fingerprint of a list, order and filter that its cursors contain. */
export function fingerprint(
  name: string,
  order: readonly OrderColumn[],
  descending = false,
  filter: unknown = null,
): string {
  const key = JSON.stringify([name, order.map(({ property }) => property), descending, filter]);
  const cached = fingerprints.get(key);
  if (cached !== undefined) return cached;
  const digest = createHash('sha256').update(key).digest('base64url').slice(0, 8);
  if (filter === null) fingerprints.set(key, digest);
  return digest;
}

/** Returns the cursor of a position, whose values are in PostgreSQL's form. */
export function writeCursor(order: readonly OrderColumn[], digest: string, bound: Bound): string {
  return encode(
    digest,
    bound.map((value, index) => VALUE_TYPES[order[index]?.kind ?? 'text'].read(value)),
  );
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
    order.every(({ kind }, index) => VALUE_TYPES[kind].isValid(bound[index])) &&
    encode(digest, bound) === cursor;
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

function encode(digest: string, bound: Bound): string {
  return Buffer.from(JSON.stringify([digest, ...bound])).toString('base64url');
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
