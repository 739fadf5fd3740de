import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { startServer, stopServer, type RunningServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { addProducts, makePlace, QUIET } from './place.ts';

const PRODUCTS = 500_000;
const SHORT_PRODUCTS = 100_000;
const LIST = '/api/v1/shop/products';

export const drainStream: Fault = {
  name: 'drain-stream',
  promise:
    'On SIGTERM during the whole list, a reader gets all of it; where that takes longer than SHUTDOWN_SECONDS, the connection breaks without an end that could be taken for a whole answer.',
  rows: ['F11'],
  on: ['postgresql'],
  async run(world) {
    const { cluster, env } = await makePlace(world, QUIET);
    if (!cluster) throw new Error('there is no server');
    const products = world.short ? SHORT_PRODUCTS : PRODUCTS;
    await addProducts(cluster, products);
    const rounds = world.short ? 1 : 5;
    let cutAfter = 0;
    for (let round = 0; round < rounds; round++) {
      const first = await startServer(env);
      world.atEnd(() => first.child.kill('SIGKILL'));
      const whole = await readUntilTheEnd(first, (res) => res.resume());
      assert.equal((await first.ended).code, 0);
      assert.ok(whole.isComplete);
      assert.equal((JSON.parse(whole.text) as unknown[]).length, products);

      const second = await startServer({ ...env, SHUTDOWN_SECONDS: '2' });
      world.atEnd(() => second.child.kill('SIGKILL'));
      const cut = await readUntilTheEnd(second, readSlowly);
      assert.equal((await second.ended).code, 1);
      assert.ok(!cut.isComplete);
      assert.ok(!cut.text.endsWith(']'));
      assert.throws(() => void JSON.parse(cut.text), SyntaxError);
      cutAfter = cut.text.length;
    }
    const idle = await startServer(env);
    assert.equal((await stopServer(idle)).code, 0);
    return {
      rounds,
      products,
      'read to the end': rounds,
      'broken off': rounds,
      'the last one after': `${Math.round(cutAfter / 1024)} KiB`,
    };
  },
};

interface Read {
  text: string;
  /** The answer came to its own end. */
  isComplete: boolean;
}

// Sends SIGTERM when the answer has begun.
async function readUntilTheEnd({ url, child }: RunningServer, read: (res: IncomingMessage, child: ChildProcess) => unknown): Promise<Read> {
  const [res] = (await once(get(url + LIST), 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  const over = new Promise<void>((done) => void res.once('close', () => done()));
  res.once('error', () => undefined);
  await once(res, 'readable');
  child.kill('SIGTERM');
  res.on('data', (piece: Buffer) => pieces.push(piece));
  read(res, child);
  await over;
  return { text: Buffer.concat(pieces).toString(), isComplete: res.complete };
}

// What is in the buffers of the network when the process has gone may come at once.
function readSlowly(res: IncomingMessage, child: ChildProcess): void {
  res.on('data', () => {
    if (child.exitCode !== null) return;
    res.pause();
    void setTimeout(200).then(() => res.resume());
  });
}
