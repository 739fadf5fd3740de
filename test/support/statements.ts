import pg from 'pg';

/** A poll of the change log, which may still run for subscribers of an earlier test. */
const POLL = / as cutoff\b/;

/** A statement that the app sent. */
export interface SentStatement {
  text: string;
  values: readonly unknown[];
}

/**
 * Runs the work. Returns its result and the SQL that the driver received meanwhile, without polls
 * of the change log, unless they are asked for.
 */
export async function recordStatements<T>(
  work: () => Promise<T>,
  { withPolls = false } = {},
): Promise<{ answer: T; statements: string[]; sent: SentStatement[] }> {
  const query: unknown = Reflect.get(pg.Client.prototype, 'query');
  const all: SentStatement[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [statement, values] = args;
    const { text, values: own } = Object(
      typeof statement === 'string' ? { text: statement } : statement,
    ) as { text?: unknown; values?: unknown };
    all.push({ text: String(text), values: (own ?? values) as unknown[] });
    return Reflect.apply(query as () => unknown, this, args);
  } as typeof pg.Client.prototype.query;
  try {
    const answer = await work();
    const sent = all.filter(({ text }) => withPolls || !POLL.test(text));
    return { answer, statements: sent.map(({ text }) => text), sent };
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query);
  }
}
