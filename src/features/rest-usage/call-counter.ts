/** Under this name stand the clients that there is no room to count one by one. */
export const OTHERS = '(others)';

/** How many clients and users are told apart at a time, with and without a user. */
const MAX_TALLIES = 1_000;
/** As many again are told apart by a metric as long as the process runs: half with a user, half without. */
const MAX_SERIES = 500;
const MAX_CLIENT = 255;

/** Calls of one row by one client as one user; `subject` is empty where nobody was signed in. */
export interface Calls {
  row: string;
  client: string;
  subject: string;
  firstAt: Date;
  lastAt: Date;
  calls: number;
}

/** How often a row was called by a client as a user since the process started. */
export interface Series {
  row: string;
  client: string;
  subject: string;
  calls: number;
}

interface Tally extends Calls {
  series: Series;
}

/**
 * Counts calls of REST rows in memory, by row, client and user. What it holds is bounded, whatever clients call themselves: beyond
 * that they are counted together as `(others)`. Those with a user have room of their own, which nobody without one can take.
 */
export class CallCounter {
  private readonly all = new Bounded<Series>(MAX_SERIES, (row, client, subject) => ({ row, client, subject, calls: 0 }));
  private tallies = this.noTallies();

  /** Counts a call. The client may be any text; the user is empty where there is none. */
  count(row: string, client: string, subject: string, at: Date): void {
    const tally = this.tallies.of(row, client, subject);
    if (tally.calls === 0) tally.firstAt = at;
    tally.lastAt = at;
    tally.calls++;
    tally.series.calls++;
  }

  /** Hands over what was counted since this was last asked. */
  take(): readonly Calls[] {
    const active = [...this.tallies].filter(({ calls }) => calls > 0);
    // Whoever called of late keeps its place: a flood of new names is no reason to lose sight of the old ones.
    this.tallies = this.noTallies();
    for (const { row, client, subject } of active) this.tallies.of(row, client, subject);
    return active;
  }

  /** Takes back what could not be stored, to be handed over again. */
  putBack(taken: readonly Calls[]): void {
    for (const { row, client, subject, firstAt, lastAt, calls } of taken) {
      const tally = this.tallies.of(row, client, subject);
      if (tally.calls === 0 || firstAt < tally.firstAt) tally.firstAt = firstAt;
      if (tally.calls === 0 || lastAt > tally.lastAt) tally.lastAt = lastAt;
      tally.calls += calls;
    }
  }

  /** All that was counted since the process started. */
  series(): Iterable<Readonly<Series>> {
    return this.all;
  }

  private noTallies(): Bounded<Tally> {
    const never = new Date(0);
    return new Bounded(MAX_TALLIES, (row, client, subject) => ({
      row,
      client,
      subject,
      firstAt: never,
      lastAt: never,
      calls: 0,
      series: this.all.of(row, client, subject),
    }));
  }
}

/** What is kept by row, client and user, for so many of each kind: with a user and without. */
class Bounded<Kept> implements Iterable<Kept> {
  // Maps in maps: a call that is counted puts no key together.
  private readonly rows = new Map<string, Map<string, Map<string, Kept>>>();
  private named = 0;
  private nameless = 0;

  constructor(
    private readonly max: number,
    private readonly make: (row: string, client: string, subject: string) => Kept,
  ) {}

  of(row: string, client: string, subject: string): Kept {
    const known = this.rows.get(row)?.get(client)?.get(subject);
    if (known !== undefined) return known;
    const name = nameOf(client);
    return name === client ? this.add(row, name, subject) : this.of(row, name, subject);
  }

  *[Symbol.iterator](): Generator<Kept> {
    for (const clients of this.rows.values()) for (const subjects of clients.values()) yield* subjects.values();
  }

  private add(row: string, client: string, subject: string): Kept {
    // There are as many of these as there are rows.
    const isOthers = client === OTHERS && subject === '';
    if (!isOthers && (subject === '' ? this.nameless++ : this.named++) >= this.max) return this.of(row, OTHERS, '');
    const clients = inMap(this.rows, row, () => new Map<string, Map<string, Kept>>());
    const subjects = inMap(clients, client, () => new Map<string, Kept>());
    return inMap(subjects, subject, () => this.make(row, client, subject));
  }
}

function inMap<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

// As PostgreSQL can store it. Through bytes, for a piece of a long text would keep the whole of it in memory.
function nameOf(client: string): string {
  return Buffer.from(client.replaceAll('\0', '?').slice(0, MAX_CLIENT).toWellFormed()).toString();
}
