import { LRUCache } from 'lru-cache';
import type { Context } from '../request/context.ts';
import { counters, gauge } from '../core/metrics.ts';
import { freshOf, tallyOf } from '../pagination/row-counts.ts';
import { Forms, type Body } from './compression.ts';
import type { Operation } from '../telemetry/request-record.ts';

const MAX_CHARACTERS = 16_000_000;
const MAX_ANSWER = 200_000;
/** An answer with its request and its compressed forms. */
const MAX_ENTRY = 3 * MAX_ANSWER;
/** Longer requests are not remembered: of those that have come once, the whole text is. */
const MAX_KEY = 10_000;
/** How many requests are remembered as having come once. */
const MAX_SEEN = 1_000;

const lookups = counters(
  'shopfront_shared_lookups_total',
  'Public reads that could share an answer, by whether there was one.',
  'outcome',
  ['hit', 'miss'],
);

/** An answer that is the same for everyone. */
export interface SharedAnswer extends Body {
  headers?: Readonly<Record<string, string>>;
  /** Its entity tag, where it may be kept by whoever gets it (caching.ts). */
  tag?: string;
  /** What it is the answer to, at the GraphQL door. */
  operation?: Operation;
}

interface Kept {
  answer: SharedAnswer;
  tally: string;
  /** How far the table had come before the answer was made, and on which server. */
  revision: string;
}

/**
 * Answers of public reads, shared while the table that they were made from stays as it is. How far that has come is never older
 * than pagination/row-counts.ts promises.
 */
export class SharedAnswers {
  private readonly kept = new LRUCache<string, Kept>({
    maxSize: MAX_CHARACTERS,
    maxEntrySize: MAX_ENTRY,
    sizeCalculation: ({ answer }, key) => answer.body.length + key.length + (answer.forms?.bytes ?? 0),
  });
  private seen = new Set<string>();
  private seenBefore = new Set<string>();
  private readonly making = new Map<string, { revision: string; answer: Promise<SharedAnswer | undefined> }>();

  constructor() {
    gauge('shopfront_shared_answers', 'Shared answers that are kept.', () => this.kept.size);
  }

  /** The answer to this request, where there is one and it is known to hold. */
  find(ctx: Pick<Context, 'statements'>, key: string): SharedAnswer | undefined {
    const kept = this.kept.get(key);
    if (!kept || freshOf(ctx, kept.tally)?.revision !== kept.revision) return undefined;
    lookups.hit++;
    return kept.answer;
  }

  /**
   * The answer to this request: one that holds, one that is just being made, or what `make` makes. Undefined is not kept. Throws as `make`
   * does, and where the database cannot tell how far the table has come.
   */
  async answer<Made extends SharedAnswer | undefined>(
    ctx: Context,
    key: string,
    tally: string,
    make: () => Promise<Made>,
  ): Promise<SharedAnswer | Made> {
    // What comes once is not worth keeping, and most of what comes in great numbers comes once.
    if (key.length > MAX_KEY) return make();
    if (!this.seen.has(key) && !this.seenBefore.has(key)) {
      lookups.miss++;
      this.note(key);
      return this.firstOf(key, make);
    }
    const { revision } = await tallyOf(ctx, tally);
    const kept = this.kept.get(key);
    const running = this.making.get(key);
    if (kept?.revision === revision || running?.revision === revision) lookups.hit++;
    else lookups.miss++;
    if (kept?.revision === revision) return kept.answer;
    if (running?.revision === revision) return (await running.answer) ?? make();
    // What is kept under the primary's version is read from the primary: a replica behind it would be kept as new.
    delete ctx.replica;
    const made = make().then((answer) => this.keep(key, answer, tally, revision));
    const flight = { revision, answer: made.catch(() => undefined) };
    this.making.set(key, flight);
    try {
      return await made;
    } finally {
      if (this.making.get(key) === flight) this.making.delete(key);
    }
  }

  private keep<Made extends SharedAnswer | undefined>(key: string, answer: Made, tally: string, revision: string): Made {
    if (!answer || answer.body.length > MAX_ANSWER) return answer;
    const store = () => this.kept.set(key, { answer, tally, revision });
    // As long as it is stored, it is measured again with what has been added. The cache measures another object only.
    answer.forms = new Forms(answer.body, () => this.kept.peek(key)?.answer === answer && store());
    store();
    return answer;
  }

  // What is refused is not remembered: another time, too, it is refused without asking the database for its version.
  private async firstOf<Made>(key: string, make: () => Promise<Made>): Promise<Made> {
    let made: Made | undefined;
    try {
      return (made = await make());
    } finally {
      if (made === undefined) {
        this.seen.delete(key);
        this.seenBefore.delete(key);
      }
    }
  }

  // The latest ones, in two halves: the older half goes as a whole.
  private note(key: string): void {
    this.seen.add(key);
    if (this.seen.size < MAX_SEEN / 2) return;
    this.seenBefore = this.seen;
    this.seen = new Set();
  }
}
