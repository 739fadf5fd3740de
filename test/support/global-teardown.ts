/** Drops the databases of the setup. */
export default async function teardown(): Promise<void> {
  await Promise.all((globalThis.testDatabases ?? []).map(async (database) => database.drop()));
}
