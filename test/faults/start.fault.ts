import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { databaseProcessOf, stopServer } from '../support/process.ts';
import { memoryOf, memoryOfDatabase } from '../support/resident.ts';
import type { Fault } from './fault.ts';
import { makeDatabase, startShop, type ShopDatabase } from './place.ts';
import { probe } from './serving.ts';

const STARTS = 20;
const SHORT_STARTS = 1;
/** Time in ms without requests after which a server counts as idle. */
const IDLE_MS = 5_000;

export const start: Fault = {
  name: 'start',
  promise:
    'A server is ready within 1.5 s, and within 3 s if it creates a new embedded database. When idle, it uses at most 200 MB, and with the embedded database 300 MB.',
  on: ['embedded', 'postgresql'],
  async run(context) {
    const database = await makeDatabase(context);
    let slowest = 0;
    let memory = 0;
    const first = await timed(database.env);
    for (let count = 0; count < (context.short ? SHORT_STARTS : STARTS); count++)
      slowest = Math.max(slowest, await timed(database.env));
    return {
      ...(context.on === 'embedded' && {
        'first start': `${(first / 1000).toFixed(1)} s`,
        'to be ready within at first': '3 s',
      }),
      'slowest of the others': `${(slowest / 1000).toFixed(1)} s`,
      'to be ready within': '1.5 s',
      'memory when idle': `${memory.toFixed(0)} MB`,
      'to be at most': context.on === 'embedded' ? '300 MB' : '200 MB',
    };

    async function timed(env: ShopDatabase['env']): Promise<number> {
      const begun = performance.now();
      const server = await startShop(context, env);
      const ms = performance.now() - begun;
      assert.equal((await probe(`${server.url}/readyz`)).status, 200);
      if (memory === 0) {
        await setTimeout(IDLE_MS);
        memory = memoryOf(server);
        if (env['DATA_DIR'] !== undefined)
          memory += memoryOfDatabase(await databaseProcessOf(env['DATA_DIR']));
      }
      assert.equal((await stopServer(server)).code, 0);
      return ms;
    }
  },
};
