import pg from 'pg';

/** Runs the work. Returns its result and the SQL that the driver received meanwhile. */
export async function recordStatements<T>(
  work: () => Promise<T>,
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
    return { answer: await work(), statements };
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query);
  }
}
