import assert from 'node:assert/strict';
import { memoryAddedBy } from '../support/resident.ts';
import type { RunningServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { makeDatabase, QUIET, startShop } from './place.ts';
import { openSession } from '../support/shopper.ts';

const POSTS = 1_000;
const SHORT_POSTS = 200;
/** Maximum size of a body. */
const BODY_BYTES = 16 * 1024;
const MAX_ADDED = 32;
const PATH = '/api/v1/shop/product/';

export const payloadMemory: Fault = {
  name: 'payload-memory',
  promise: `A thousand request bodies of 16 KB add at most ${MAX_ADDED} MiB of memory.`,
  on: ['postgresql'],
  async run(context) {
    const { env } = await makeDatabase(context, QUIET);
    const server = await startShop(context, env);
    const key = await openSession(server.url);
    const posts = context.short ? SHORT_POSTS : POSTS;
    // Warms up.
    for (let count = 0; count < posts; count++) await post(server, key);
    const added = await memoryAddedBy(server, async () => {
      for (let count = 0; count < posts; count++) await post(server, key);
    });
    assert.ok(added <= MAX_ADDED, `the bodies added ${added.toFixed(0)} MiB`);
    return {
      bodies: posts,
      'added by them': `${added.toFixed(1)} MiB (goal: ${MAX_ADDED})`,
    };
  },
};

// A name of that length is rejected after the body was parsed.
async function post({ url }: RunningServer, key: string): Promise<void> {
  const empty = JSON.stringify({ name: '', barcode: '4006381333931', price: 1 });
  const body = JSON.stringify({
    name: 'n'.repeat(BODY_BYTES - empty.length),
    barcode: '4006381333931',
    price: 1,
  });
  const headers = { 'Content-Type': 'application/json', 'X-SESSION-ID': key };
  const answer = await fetch(url + PATH, { method: 'POST', headers, body });
  assert.equal(answer.status, 422);
  await answer.arrayBuffer();
}
