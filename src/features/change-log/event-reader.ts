import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { pauses } from '../../core/backoff.ts';
import type { Statements } from '../../database/sql.ts';
import { isBefore, readAfter, readHead, type Change, type Place } from './change-log.ts';
import { Follower } from './subscriber.ts';

// Everyone of a process who follows the log is served by one reader. It reads while someone has had all there is and waits for more: so it reads nothing for
// nobody, and goes no further ahead than the quickest does. Who is slower than that by all that is kept here has fallen behind.

/** How often the log is read, in ms, at most. */
const EVERY_MS = 50;
/** How many changes are read at a time. */
const READ_AT_ONCE = 500;
/** How far behind the quickest anyone may be, in changes. */
const MOST_KEPT = 5_000;

/** How many followers are told in one turn of the event loop. */
const TOLD_AT_ONCE = 10;

/** Runs something as part of no request: what is read on for everyone belongs to the trace of none. */
const forNobody = AsyncLocalStorage.snapshot();

/** The one reader of the log for all who follow it in this process. */
export class Feed {
  private place: Place | undefined;
  /** What was read last, and how many were read before it. */
  private kept: Change[] = [];
  private before = 0;
  private readonly followers = new Set<Follower>();
  /** Those who are to look again. */
  private readonly toWake = new Set<Follower>();
  private joining = 0;
  private reading: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private nextAt = 0;
  private isBehind = false;
  private waking: Promise<void> | undefined;
  private pauses = pauses();

  constructor(private readonly statements: Statements) {}

  async join({ request }: Context): Promise<Follower> {
    this.joining++;
    try {
      // Once more, if it was begun before: then what is committed by now has been read, and is not new to who joins.
      await this.reading?.catch(() => undefined);
      do {
        // Whoever has yet to be told of what was read would fall behind.
        await this.waking;
        await this.read();
      } while (this.isBehind);
      const place = this.place;
      if (!place) throw new TypeError('A feed that has read has a place');
      const follower = new Follower(this, place, this.before + this.kept.length, request);
      this.followers.add(follower);
      // Also where the client is gone before anything is asked of the follower, and so nobody is there to have it leave.
      request?.onGiveUp(() => this.leave(follower));
      return follower;
    } finally {
      this.joining--;
      this.rest();
    }
  }

  leave(follower: Follower): void {
    follower.stop();
    this.followers.delete(follower);
    this.rest();
  }

  // Whoever comes next begins with what is then.
  private rest(): void {
    if (this.followers.size > 0 || this.joining > 0) return;
    clearTimeout(this.timer);
    this.timer = this.place = undefined;
    this.kept = [];
  }

  /** The change of this number, counted from the first that was ever read; undefined where it is yet to come. */
  at(number: number): Change | undefined {
    return this.kept[number - this.before];
  }

  /** Has it read on: somebody has had all there is. */
  want(): void {
    if (this.timer || this.reading || this.waking) return;
    const readOn = () => {
      this.timer = undefined;
      // Followers stay while the database is away, for the log has what they miss meanwhile. Requests tell of its trouble.
      this.read().catch(() => undefined);
    };
    this.timer = forNobody(() => setTimeout(readOn, Math.max(0, this.nextAt - performance.now())).unref());
  }

  private read(): Promise<void> {
    return (this.reading ??= this.tryToRead().finally(() => {
      this.reading = undefined;
      this.wantMore();
    }));
  }

  private async tryToRead(): Promise<void> {
    try {
      await this.readPiece();
      this.pauses = pauses();
    } catch (error) {
      this.nextAt = performance.now() + this.pauses.next().value;
      throw error;
    }
  }

  private async readPiece(): Promise<void> {
    const { place: from, statements } = this;
    this.nextAt = performance.now() + EVERY_MS;
    if (!from) {
      this.place = await readHead({ statements });
      return;
    }
    const { changes, place } = await readAfter({ statements }, from, READ_AT_ONCE);
    // Everyone has left meanwhile.
    if (this.place !== from) return;
    this.place = place;
    // A database that counts its transactions from before: it was put back, or a replica that was behind took over.
    if (isBefore(place, from)) for (const follower of this.followers) follower.end(changesLost());
    this.isBehind = changes.length === READ_AT_ONCE;
    if (this.isBehind) this.nextAt = 0;
    this.keep(changes);
  }

  private keep(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.kept.push(...changes);
    const dropped = this.kept.splice(0, this.kept.length - MOST_KEPT).length;
    this.before += dropped;
    for (const follower of this.followers) {
      if (follower.number < this.before) follower.end(fellBehind());
      else if (follower.isWaiting) this.toWake.add(follower);
    }
    this.waking ??= this.wakeAll().finally(() => {
      this.waking = undefined;
      this.wantMore();
    });
  }

  // What they do with a change takes time, and others want their turn.
  private async wakeAll(): Promise<void> {
    let woken = 0;
    for (const follower of this.toWake) {
      this.toWake.delete(follower);
      follower.wake();
      if (++woken % TOLD_AT_ONCE === 0) await setImmediate();
    }
  }

  private wantMore(): void {
    for (const { isWaiting } of this.followers) if (isWaiting) return this.want();
  }
}

function fellBehind(): DomainError {
  return new DomainError('FELL_BEHIND', 'You have fallen too far behind. Go on after the last cursor that you have');
}

/** The refusal where the log no longer tells what a client has missed. */
export function changesLost(): DomainError {
  return new DomainError('CHANGES_LOST', 'The changes since then are no longer known. Read anew what you keep, and begin without a cursor');
}
