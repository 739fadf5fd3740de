import assert from 'node:assert/strict';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { memoryAddedBy } from '../support/resident.ts';
import { stopServer, type RunningServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { addProducts, makeDatabase, QUIET, startShop } from './place.ts';

const PRODUCTS = 1_000_000;
const SHORT_PRODUCTS = 100_000;
const LIST = '/api/v1/shop/products';
const MAX_ADDED = 64;
const MAX_ADDED_BY_SLOW = 128;
const SLOW_READERS = 10;
const SLOW_BYTES_A_SECOND = 100_000;
const SLOW_SECONDS = 30;
const SHORT_SLOW_SECONDS = 5;

export const wholeListMemory: Fault = {
  name: 'whole-list-memory',
  promise: `Streaming a million products adds at most ${MAX_ADDED} MiB of memory, and ten clients that read 100 KB/s add at most ${MAX_ADDED_BY_SLOW} MiB.`,
  on: ['postgresql'],
  async run(context) {
    const { short } = context;
    const { cluster, env } = await makeDatabase(context, QUIET);
    if (!cluster) throw new Error('There is no PostgreSQL server');
    const products = short ? SHORT_PRODUCTS : PRODUCTS;
    await addProducts(cluster, products);
    const server = await startShop(context, env);
    const first = await readWhole(server);
    const later = await readWhole(server);
    await stopServer(server);
    const other = await startShop(context, env);
    const slow = await memoryAddedBy(other, () =>
      readSlowly(other, short ? SHORT_SLOW_SECONDS : SLOW_SECONDS),
    );
    for (const { rows } of [first, later]) assert.equal(rows, products);
    assert.ok(first.added <= MAX_ADDED, `the first list added ${first.added.toFixed(0)} MiB`);
    assert.ok(later.added <= MAX_ADDED, `a later list added ${later.added.toFixed(0)} MiB`);
    assert.ok(slow <= MAX_ADDED_BY_SLOW, `slow readers added ${slow.toFixed(0)} MiB`);
    return {
      products,
      'added by the first list of a process': `${first.added.toFixed(0)} MiB (goal: ${MAX_ADDED})`,
      'by the second': `${later.added.toFixed(0)} MiB`,
      [`by ${SLOW_READERS} slow readers at once`]: `${slow.toFixed(0)} MiB (goal: ${MAX_ADDED_BY_SLOW})`,
      'products a second': `${first.rate.toFixed(0)} and ${later.rate.toFixed(0)} (goal: 75000)`,
      'first byte after': `${first.firstByteMs.toFixed(0)} and ${later.firstByteMs.toFixed(0)} ms (goal: 200 ms)`,
    };
  },
};

interface WholeRead {
  added: number;
  rows: number;
  rate: number;
  firstByteMs: number;
}

async function readWhole(server: RunningServer): Promise<WholeRead> {
  let [rows, firstByteMs, ms] = [0, 0, 0];
  const added = await memoryAddedBy(server, async () => {
    const begun = performance.now();
    const res = await answerOf(server);
    for await (const piece of res as AsyncIterable<Buffer>) {
      firstByteMs ||= performance.now() - begun;
      // Each product has exactly one.
      for (let at = piece.indexOf('}'); at >= 0; at = piece.indexOf('}', at + 1)) rows++;
    }
    ms = performance.now() - begun;
  });
  return { added, rows, firstByteMs, rate: (rows * 1000) / ms };
}

async function readSlowly(server: RunningServer, seconds: number): Promise<void> {
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, () => answerOf(server)));
  const end = performance.now() + seconds * 1000;
  await Promise.all(
    readers.map(async (res) => {
      for await (const piece of res as AsyncIterable<Buffer>) {
        if (performance.now() > end) break;
        await setTimeout((piece.length * 1000) / SLOW_BYTES_A_SECOND);
      }
      res.destroy();
    }),
  );
}

function answerOf({ url }: RunningServer): Promise<IncomingMessage> {
  return new Promise((done, fail) => void get(url + LIST, done).on('error', fail));
}
