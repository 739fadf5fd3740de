/** Drops what the set-up made. */
export default async function teardown(): Promise<void> {
  await Promise.all((globalThis.testDatabases ?? []).map(async (database) => database.drop()));
}
