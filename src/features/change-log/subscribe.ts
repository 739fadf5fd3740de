import type { Context } from '../../request/context.ts';
import type { Statements } from '../../database/sql.ts';
import { Turns } from '../../core/keyed-limit.ts';
import { isBefore, placeOf, reachesBackTo, readAfter, type Change, type Place } from './change-log.ts';
import { changesLost, Feed } from './event-reader.ts';
import type { Follower } from './subscriber.ts';

/** How many changes from before are read at a time: they are kept for one alone, for as long as its client takes. */
const READ_AT_ONCE = 20;

const turns = new Turns();
const feeds = new WeakMap<Statements, Feed>();

/**
 * The changes from now on, or those after a cursor, until the request is given up. A follower that falls behind, and all of them where the database has lost changes, are ended by the
 * request's `end`, and told why. Throws BAD_USER_INPUT for a cursor that is none of ours, and CHANGES_LOST for one that the log does not reach back to.
 */
export async function follow(ctx: Context, after?: string | null): Promise<AsyncGenerator<Change, void>> {
  const { statements } = ctx;
  if (!statements) throw new TypeError('Nothing can be followed inside a transaction');
  const from = after == null ? undefined : placeOf('after', after);
  if (from && !(await reachesBackTo(ctx, from))) throw changesLost();
  const feed = feeds.get(statements) ?? new Feed(statements);
  feeds.set(statements, feed);
  const follower = await feed.join(ctx);
  return changesOf(ctx, feed, follower, from);
}

async function* changesOf(ctx: Context, feed: Feed, follower: Follower, from: Place | undefined): AsyncGenerator<Change, void> {
  try {
    if (from) yield* changesBetween(ctx, from, follower.start);
    for (let next = await follower.next(); next; next = await follower.next()) yield next;
  } finally {
    feed.leave(follower);
  }
}

// What came before it joined is read for it alone: for one subscription of a connection at a time, and one of a network at a time.
async function* changesBetween(ctx: Context, from: Place, end: Place): AsyncGenerator<Change, void> {
  const isOver = () => ctx.request?.isGivenUp === true;
  const done = await turns.take(ctx.request?.connection ?? ctx);
  try {
    for (let place = from; isBefore(place, end) && !isOver();) {
      const piece = await turns.run(ctx.network, () => readAfter(ctx, place, READ_AT_ONCE));
      for (const change of piece.changes) {
        if (isOver() || isBefore(end, change)) break;
        yield change;
      }
      place = piece.place;
      // Whoever reads slowly may be overtaken by the sweep.
      if (piece.changes.length === READ_AT_ONCE && !isOver() && !(await reachesBackTo(ctx, place))) throw changesLost();
    }
  } finally {
    done();
  }
}
