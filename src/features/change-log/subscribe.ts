import type { Context } from '../../request/context.ts';
import type { Statements } from '../../database/sql.ts';
import { KeyedLimit } from '../../core/keyed-limit.ts';
import {
  isBefore,
  positionOf,
  hasChangeAt,
  readAfter,
  type Change,
  type LogPosition,
} from './change-log.ts';
import { cursorExpired, EventReader, type Subscriber } from './event-reader.ts';

/**
 * Maximum number of past changes per read: each subscriber holds its own until its client takes
 * them.
 */
const REPLAY_SIZE = 20;

const replays = new KeyedLimit();
const readers = new WeakMap<Statements, EventReader>();

/**
 * Returns the changes from now on, or those after a cursor, until the request is cancelled. The
 * `end` of the request receives the error that ends a subscriber: SLOW_CONSUMER, or CURSOR_EXPIRED
 * if the database has lost changes. Throws BAD_USER_INPUT for an invalid cursor and CURSOR_EXPIRED
 * for one that is older than the log.
 */
export async function subscribe(
  ctx: Context,
  after?: string | null,
): Promise<AsyncGenerator<Change, void>> {
  const { statements } = ctx;
  if (!statements) throw new TypeError('Subscribing inside a transaction is not possible');
  const from = after == null ? undefined : positionOf('after', after);
  if (from && !(await hasChangeAt(ctx, from))) throw cursorExpired();
  const reader = readers.get(statements) ?? new EventReader(statements);
  readers.set(statements, reader);
  const subscriber = await reader.subscribe(ctx);
  return changesOf(ctx, reader, subscriber, from);
}

async function* changesOf(
  ctx: Context,
  reader: EventReader,
  subscriber: Subscriber,
  from: LogPosition | undefined,
): AsyncGenerator<Change, void> {
  try {
    if (from) yield* changesBetween(ctx, from, subscriber.start);
    for (let next = await subscriber.next(); next; next = await subscriber.next()) yield next;
  } finally {
    reader.unsubscribe(subscriber);
  }
}

// Replays the changes before the subscription: for one subscription of a connection at a time, and
// one read of a network at a time.
async function* changesBetween(
  ctx: Context,
  from: LogPosition,
  end: LogPosition,
): AsyncGenerator<Change, void> {
  const isAborted = () => ctx.request?.signal.aborted === true;
  const release = await replays.take(ctx.request?.connection ?? ctx);
  try {
    for (let position = from; isBefore(position, end) && !isAborted();) {
      const batch = await replays.run(ctx.network, () => readAfter(ctx, position, REPLAY_SIZE));
      for (const change of batch.changes) {
        if (isAborted() || isBefore(end, change)) break;
        yield change;
      }
      position = batch.position;
      // The sweep may have deleted the next changes of a slow subscriber.
      if (
        batch.changes.length === REPLAY_SIZE &&
        !isAborted() &&
        !(await hasChangeAt(ctx, position))
      )
        throw cursorExpired();
    }
  } finally {
    release();
  }
}
