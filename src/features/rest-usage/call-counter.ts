import { DAY_MS } from '../../core/time.ts';

/** Client name under which clients above the maximum are counted together. */
export const OTHERS = '(others)';

/** Maximum number of pending counts, each with and without a user. */
const MAX_COUNTS = 1_000;
/** Maximum number of metric series for the life of the process, each with and without a user. */
const MAX_SERIES = 500;
/** Maximum length of a client name, in characters. */
const MAX_CLIENT = 255;

/** Calls of one endpoint by one client as one user. `subject` is empty for an anonymous caller. */
export interface Calls {
  endpoint: string;
  client: string;
  subject: string;
  firstAt: Date;
  lastAt: Date;
  calls: number;
  /** The calls by UTC day, as the number of days since 1970-01-01. */
  days: ReadonlyMap<number, number>;
}

/** Number of calls of an endpoint by a client as a user since the process started. */
export interface Series {
  endpoint: string;
  client: string;
  subject: string;
  calls: number;
}

interface CallCount extends Calls {
  days: Map<number, number>;
  series: Series;
}

/**
 * Counts calls of REST endpoints in memory, by endpoint, client and user. Its size is bounded:
 * above the maximum, clients are counted together as `(others)`. Calls with a user have a maximum
 * of their own, which anonymous calls cannot exhaust.
 */
export class CallCounter {
  private readonly totals = new BoundedCounts<Series>(MAX_SERIES, (endpoint, client, subject) => ({
    endpoint,
    client,
    subject,
    calls: 0,
  }));
  private pending = this.emptyCounts();

  /** Counts a call. The client may be any text; `subject` is empty for an anonymous caller. */
  count(endpoint: string, client: string, subject: string, at: Date): void {
    const count = this.pending.get(endpoint, client, subject);
    if (count.calls === 0) count.firstAt = at;
    count.lastAt = at;
    count.calls++;
    add(count.days, Math.floor(at.getTime() / DAY_MS), 1);
    count.series.calls++;
  }

  /** Returns the counts since the last call, and resets them. */
  take(): readonly Calls[] {
    const active = [...this.pending].filter(({ calls }) => calls > 0);
    // Recent clients keep their entries, so that a flood of new names does not displace them.
    this.pending = this.emptyCounts();
    for (const { endpoint, client, subject } of active) this.pending.get(endpoint, client, subject);
    return active;
  }

  /** Restores counts that could not be stored. */
  putBack(taken: readonly Calls[]): void {
    for (const { endpoint, client, subject, firstAt, lastAt, calls, days } of taken) {
      const count = this.pending.get(endpoint, client, subject);
      if (count.calls === 0 || firstAt < count.firstAt) count.firstAt = firstAt;
      if (count.calls === 0 || lastAt > count.lastAt) count.lastAt = lastAt;
      count.calls += calls;
      for (const [day, callsOfDay] of days) add(count.days, day, callsOfDay);
    }
  }

  /** Returns the totals since the process started. */
  series(): Iterable<Readonly<Series>> {
    return this.totals;
  }

  private emptyCounts(): BoundedCounts<CallCount> {
    const epoch = new Date(0);
    return new BoundedCounts(MAX_COUNTS, (endpoint, client, subject) => ({
      endpoint,
      client,
      subject,
      firstAt: epoch,
      lastAt: epoch,
      calls: 0,
      days: new Map(),
      series: this.totals.get(endpoint, client, subject),
    }));
  }
}

/** Counts by endpoint, client and user: at most `max` with a user, and as many without. */
class BoundedCounts<Count> implements Iterable<Count> {
  // Nested maps, so that counting a call concatenates no key.
  private readonly endpoints = new Map<string, Map<string, Map<string, Count>>>();
  private withUser = 0;
  private anonymous = 0;

  constructor(
    private readonly max: number,
    private readonly create: (endpoint: string, client: string, subject: string) => Count,
  ) {}

  get(endpoint: string, client: string, subject: string): Count {
    const existing = this.endpoints.get(endpoint)?.get(client)?.get(subject);
    if (existing !== undefined) return existing;
    const name = normalizeName(client);
    return name === client ? this.add(endpoint, name, subject) : this.get(endpoint, name, subject);
  }

  *[Symbol.iterator](): Generator<Count> {
    for (const clients of this.endpoints.values())
      for (const subjects of clients.values()) yield* subjects.values();
  }

  private add(endpoint: string, client: string, subject: string): Count {
    // Not limited, because there is only one of these per endpoint.
    const isOthers = client === OTHERS && subject === '';
    if (!isOthers && (subject === '' ? this.anonymous++ : this.withUser++) >= this.max)
      return this.get(endpoint, OTHERS, '');
    const clients = getOrCreate(
      this.endpoints,
      endpoint,
      () => new Map<string, Map<string, Count>>(),
    );
    const subjects = getOrCreate(clients, client, () => new Map<string, Count>());
    return getOrCreate(subjects, subject, () => this.create(endpoint, client, subject));
  }
}

function add(counts: Map<number, number>, day: number, calls: number): void {
  counts.set(day, (counts.get(day) ?? 0) + calls);
}

function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(key, created);
  return created;
}

// Makes a name storable in PostgreSQL. Copies it through a buffer, because a slice would retain the
// whole text in memory.
function normalizeName(client: string): string {
  return Buffer.from(client.replaceAll('\0', '?').slice(0, MAX_CLIENT).toWellFormed()).toString();
}
