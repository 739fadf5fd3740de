import pg from 'pg';

/** A poll of the change log, which may still run for subscribers of an earlier test. */
const POLL = / as cutoff\b/;

/**
 * Runs the work. Returns its result and the SQL that the driver received meanwhile, without polls
 * of the change log, unless they are asked for.
 */
export async function recordStatements<T>(
  work: () => Promise<T>,
  { withPolls = false } = {},
): Promise<{ answer: T; statements: string[] }> {
  const query: unknown = Reflect.get(pg.Client.prototype, 'query');
  const statements: string[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [statement] = args;
    statements.push(
      String(
        typeof statement === 'string'
          ? statement
          : Reflect.get(Object(statement) as object, 'text'),
      ),
    );
    return Reflect.apply(query as () => unknown, this, args);
  } as typeof pg.Client.prototype.query;
  try {
    const answer = await work();
    return { answer, statements: statements.filter((text) => withPolls || !POLL.test(text)) };
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query);
  }
}
