import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { countOf, startLoad } from '../support/open-load.ts';
import { stopServer } from '../support/process.ts';
import { abuse, readListsRepeatedly } from '../support/abuse.ts';
import type { Fault } from './fault.ts';
import { portOf, startStocked } from './place.ts';

const HEAP_MB = 256;
const PRODUCTS = 100_000;
const RATE = 100;
const SECONDS = 60;
const SHORT_SECONDS = 8;

export const smallHeap: Fault = {
  name: 'small-heap',
  promise: `With a heap of ${HEAP_MB} MB, no request makes the process run out of memory.`,
  on: ['embedded', 'postgresql'],
  async run(context) {
    const { server } = await startStocked(context, context.short ? PRODUCTS / 10 : PRODUCTS, {
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    });
    const seconds = context.short ? SHORT_SECONDS : SECONDS;
    const running = startLoad({
      port: portOf(server),
      parts: abuse(),
      rate: RATE,
      connections: 500,
      seconds,
    });
    const readers = readListsRepeatedly(server.url, 10);
    const loaded = await running.done;
    readers.stop();
    await setTimeout(100);
    assert.equal(server.child.exitCode, null);
    assert.equal(countOf(loaded, 500), 0, JSON.stringify(loaded.answers));
    assert.equal((await fetch(`${server.url}/api/v2/shop/products`)).status, 200);
    const { code } = await stopServer(server);
    assert.equal(code, 0);
    return {
      'requests of abuse': loaded.sent,
      'whole lists read beside': readers.count(),
      'answered 500': 0,
      'exits because of memory': 0,
    };
  },
};
