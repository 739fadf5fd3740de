/** Client name under which clients above the maximum are counted together. */
export const OTHERS = '(others)';

/** Maximum number of pending counts, each with and without a user. */
const MAX_COUNTS = 1_000;
/** Maximum length of a client name, in characters. */
const MAX_CLIENT = 255;

/** Calls of an endpoint by a client as a user; `subject` is empty for an anonymous caller. */
export interface Calls {
  endpoint: string;
  client: string;
  subject: string;
  calls: number;
  firstAt: Date;
  lastAt: Date;
}

/**
 * Counts calls of REST endpoints in memory, by endpoint, client and user, until they are stored. Its
 * size is bounded: above the maximum, clients are counted together as `(others)`. Calls with a user
 * have a maximum of their own, which anonymous calls cannot exhaust.
 */
export class CallCounter {
  private pending = new Map<string, Calls>();
  private anonymous = 0;

  /** Counts a call. The client may be any text; `subject` is empty for an anonymous caller. */
  count(endpoint: string, client: string, subject: string, at: Date): void {
    const name = normalizeName(client);
    this.add({ endpoint, client: name, subject, calls: 1, firstAt: at, lastAt: at });
  }

  /** Adds counts, for example those that could not be stored. */
  add(added: Calls): void {
    const { endpoint, client, subject, calls, firstAt, lastAt } = added;
    const key = `${endpoint}\0${client}\0${subject}`;
    const count = this.pending.get(key);
    if (count) {
      count.calls += calls;
      // Those that could not be stored are older.
      if (firstAt < count.firstAt) count.firstAt = firstAt;
      if (lastAt > count.lastAt) count.lastAt = lastAt;
      return;
    }
    const size = subject === '' ? this.anonymous : this.pending.size - this.anonymous;
    // Not limited, because there is only one of these per endpoint.
    const isOthers = client === OTHERS && subject === '';
    if (size >= MAX_COUNTS && !isOthers) return this.add({ ...added, client: OTHERS, subject: '' });
    this.pending.set(key, { ...added });
    if (subject === '') this.anonymous++;
  }

  /** Returns the counts since the last call, and resets them. */
  take(): readonly Calls[] {
    const taken = [...this.pending.values()];
    this.pending = new Map();
    this.anonymous = 0;
    return taken;
  }
}

// Makes a name storable in PostgreSQL. Copies a part through a buffer, because a slice would retain
// the whole text in memory.
function normalizeName(client: string): string {
  const name = client.replaceAll('\0', '?').slice(0, MAX_CLIENT).toWellFormed();
  return name === client ? client : Buffer.from(name).toString();
}
