import 'reflect-metadata';
import type { Config } from '@jest/types';
import { makeDatabase, makeTemplate, type TestDatabase } from './databases.ts';

declare global {
  var testDatabases: Pick<TestDatabase, 'drop'>[] | undefined;
}

/** Creates one database per worker, so that concurrent files do not affect each other. */
export default async function setup({ maxWorkers }: Config.GlobalConfig): Promise<void> {
  const template = await makeTemplate();
  const names = [...Array(maxWorkers).keys()].map(
    (worker) => `shopfront_test_${process.pid}_${worker + 1}`,
  );
  const databases = await Promise.all(names.map(makeDatabase));
  globalThis.testDatabases = [...databases, template];
  process.env['TEST_DATABASES'] = JSON.stringify(databases.map(({ env }) => env));
}
