import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { run, startServer, stopServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { probe } from './serving.ts';

const WITHIN_MS = 2_000;
/** Maximum pause between a kill and the next start, in ms. */
const MAX_PAUSE_MS = 200;

export const twoProcesses: Fault = {
  name: 'two-processes',
  promise:
    'A second process on the same data directory exits at once with 1 and names the first, which is not affected. A killed process does not prevent the next start, however soon that is.',
  on: ['embedded'],
  async run({ directory, short, atEnd }) {
    const env = { DATA_DIR: join(directory, 'data'), LOG_LEVEL: 'silent' };
    const first = await startServer(env);
    atEnd(() => stopServer(first));
    const tries = short ? 3 : 20;
    let slowest = 0;
    for (let count = 0; count < tries; count++) {
      const begun = performance.now();
      const second = await run('main.js', [], { ...env, PORT: '0' });
      slowest = Math.max(slowest, performance.now() - begun);
      assert.equal(second.code, 1);
      assert.match(
        second.stderr,
        new RegExp(`^The data directory .* is in use by process ${first.child.pid}\\. `),
      );
    }
    assert.equal((await probe(`${first.url}/api/v2/shop/products`)).status, 200);
    assert.equal(first.child.exitCode, null);

    let killed = first;
    for (let count = 0; count < tries; count++) {
      await stopServer(killed, 'SIGKILL');
      await setTimeout(Math.random() * MAX_PAUSE_MS);
      killed = await startServer(env);
    }
    assert.equal((await stopServer(killed)).code, 0);
    return {
      tries,
      'rejected after at most': `${Math.round(slowest)} ms`,
      'to be rejected within': `${WITHIN_MS} ms`,
      'starts after a kill': tries,
    };
  },
};
