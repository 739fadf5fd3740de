import 'reflect-metadata';
import type { Config } from '@jest/types';
import { makeDatabase, type TestDatabase } from './databases.ts';

declare global {
  var testDatabases: TestDatabase[] | undefined;
}

/** One database for each worker, so that files which run at the same time do not see each other. */
export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  const names = [...Array(maxWorkers).keys()].map((worker) => `shopfront_test_${process.pid}_${worker + 1}`);
  globalThis.testDatabases = await Promise.all(names.map(makeDatabase));
  process.env['TEST_DATABASES'] = JSON.stringify(globalThis.testDatabases.map(({ env }) => env));
}
