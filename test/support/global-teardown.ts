/** Drops the databases of the setup, then stops their server. */
export default async function teardown(): Promise<void> {
  for (const database of globalThis.testDatabases ?? []) await database.drop();
}
