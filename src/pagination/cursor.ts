import { createHash } from 'node:crypto';
import { badInput, type DomainError } from '../core/errors.ts';
import { readPk } from '../core/pk.ts';
import { readTime } from '../database/sql.ts';
import { isStorable } from '../core/text.ts';
import { isUuid } from '../core/uuid.ts';

/** What a column of an order holds, and with it which values a cursor may carry for it. */
export type OrderKind = 'decimal' | 'pk' | 'rank' | 'serial' | 'text' | 'time' | 'transaction' | 'uuid';

/** A column of an order, by its property. */
export interface OrderColumn {
  property: string;
  kind: OrderKind;
}

/** A place in a list: the values of the order's columns there. */
export type Bound = readonly unknown[];

/** One kind: its type in SQL, what of PostgreSQL's text stands in a cursor, and what may stand there. */
interface Values {
  sqlType: string;
  read(cell: unknown): unknown;
  isGood(value: unknown): boolean;
}

const asItIs = (cell: unknown): unknown => cell;
const VALUES: Record<OrderKind, Values> = {
  decimal: { sqlType: 'numeric', read: asItIs, isGood: (value) => typeof value === 'string' && /^\d{1,12}(\.\d{1,2})?$/.test(value) },
  pk: { sqlType: 'integer', read: Number, isGood: (value) => typeof value === 'number' && readPk(String(value)) !== undefined },
  rank: { sqlType: 'integer', read: Number, isGood: (value) => Number.isSafeInteger(value) },
  serial: { sqlType: 'bigint', read: asItIs, isGood: isCount },
  text: { sqlType: 'text', read: asItIs, isGood: (value) => typeof value === 'string' && isStorable(value) },
  time: { sqlType: 'timestamptz', read: (cell) => readTime(cell).toISOString(), isGood: isInstant },
  transaction: { sqlType: 'xid8', read: asItIs, isGood: isCount },
  uuid: { sqlType: 'uuid', read: asItIs, isGood: (value) => typeof value === 'string' && isUuid(value) },
};

// JavaScript reads 30 February as 1 March and knows a year 0, PostgreSQL neither.
function isInstant(value: unknown): boolean {
  if (typeof value !== 'string' || !/^(?!0000)\d{4}-/.test(value)) return false;
  const time = new Date(value);
  return !Number.isNaN(time.getTime()) && time.toISOString() === value;
}

// No counter of a database comes as far as its 64 bits.
function isCount(value: unknown): boolean {
  return typeof value === 'string' && /^[1-9]\d{0,17}$/.test(value);
}

/** PostgreSQL's type of what a column of an order holds. */
export function sqlTypeOf(kind: OrderKind): string {
  return VALUES[kind].sqlType;
}

// Of lists without a filter there are as many as orders; with one, as many as anyone asks for.
const known = new Map<string, string>();

/** Tells the cursors of one list, order and filter from all others. */
export function fingerprint(list: string, order: readonly OrderColumn[], descending = false, filter: unknown = null): string {
  const facts = JSON.stringify([list, order.map(({ property }) => property), descending, filter]);
  const found = known.get(facts);
  if (found !== undefined) return found;
  const print = createHash('sha256').update(facts).digest('base64url').slice(0, 8);
  if (filter === null) known.set(facts, print);
  return print;
}

/** The cursor of a place, whose values are as PostgreSQL writes them. */
export function writeCursor(order: readonly OrderColumn[], print: string, place: Bound): string {
  return encode(
    print,
    place.map((value, index) => VALUES[order[index]?.kind ?? 'text'].read(value)),
  );
}

/**
 * The place that a cursor names. Cursors are opaque to clients, but anyone can send one: what this list could not have
 * written is BAD_USER_INPUT for the argument, and nothing of it reaches SQL.
 */
export function readCursor(order: readonly OrderColumn[], print: string, argument: string, cursor: string): Bound {
  const [found, place] = decode(cursor);
  const isOurs =
    found === print &&
    place.length === order.length &&
    order.every(({ kind }, index) => VALUES[kind].isGood(place[index])) &&
    encode(print, place) === cursor;
  if (!isOurs) throw notOurs(argument);
  return place;
}

/** The refusal of a cursor that the list at hand cannot have written. */
export function notOurs(argument: string): DomainError {
  return badInput(argument, 'is no cursor of this list with this order and filter');
}

/** The first value in a cursor where that is a whole number, unchecked: `readCursor` tells whether the cursor is the list's. */
export function rankIn(cursor: string | null | undefined): number | undefined {
  const [, [rank]] = decode(cursor ?? '');
  return typeof rank === 'number' && Number.isSafeInteger(rank) ? rank : undefined;
}

function encode(print: string, place: Bound): string {
  return Buffer.from(JSON.stringify([print, ...place])).toString('base64url');
}

function decode(cursor: string): [unknown, Bound] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parts)) return [parts[0], parts.slice(1)];
  } catch {
    // not JSON, and so none of ours
  }
  return [undefined, []];
}
