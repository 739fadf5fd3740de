import 'reflect-metadata';
import type { Config } from '@jest/types';
import { makeDatabase, makeTemplate, openServer, type TestDatabase } from './databases.ts';

declare global {
  /** To be dropped in this order. */
  var testDatabases: Pick<TestDatabase, 'drop'>[] | undefined;
}

/** Creates one database per worker, so that concurrent files do not affect each other. */
export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  const template = await makeTemplate();
  const server = await openServer();
  const databases: TestDatabase[] = [];
  for (let worker = 1; worker <= maxWorkers; worker++)
    databases.push(await makeDatabase(`shopfront_test_${process.pid}_${worker}`));
  globalThis.testDatabases = [...databases, server, template];
  process.env['TEST_DATABASES'] = JSON.stringify(databases.map(({ env }) => env));
}
