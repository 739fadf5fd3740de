import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { stopServer, type RunningServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { addProducts, makeDatabase, QUIET, startShop } from './place.ts';

const PRODUCTS = 500_000;
const SHORT_PRODUCTS = 100_000;
const LIST = '/api/v1/shop/products';

export const drainStream: Fault = {
  name: 'drain-stream',
  promise:
    'On SIGTERM during a streamed list, a client receives the whole list. If that takes longer than SHUTDOWN_TIMEOUT_SECONDS, the connection is closed without a valid end of the response.',
  on: ['postgresql'],
  async run(context) {
    const { cluster, env } = await makeDatabase(context, QUIET);
    if (!cluster) throw new Error('There is no PostgreSQL server');
    const products = context.short ? SHORT_PRODUCTS : PRODUCTS;
    await addProducts(cluster, products);
    const rounds = context.short ? 1 : 5;
    let cutAfter = 0;
    for (let round = 0; round < rounds; round++) {
      const first = await startShop(context, env);
      const whole = await readUntilTheEnd(first, (res) => res.resume());
      assert.equal((await first.ended).code, 0);
      assert.ok(whole.isComplete);
      assert.equal((JSON.parse(whole.text) as unknown[]).length, products);

      const second = await startShop(context, { ...env, SHUTDOWN_TIMEOUT_SECONDS: '2' });
      const cut = await readUntilTheEnd(second, readSlowly);
      assert.equal((await second.ended).code, 1);
      assert.ok(!cut.isComplete);
      assert.ok(!cut.text.endsWith(']'));
      assert.throws(() => void JSON.parse(cut.text), SyntaxError);
      cutAfter = cut.text.length;
    }
    const idle = await startShop(context, env);
    assert.equal((await stopServer(idle)).code, 0);
    return {
      rounds,
      products,
      'read to the end': rounds,
      'cut off': rounds,
      'the last one after': `${Math.round(cutAfter / 1024)} KiB`,
    };
  },
};

interface Read {
  text: string;
  /** The response ended regularly. */
  isComplete: boolean;
}

// Sends SIGTERM after the start of the response.
async function readUntilTheEnd(
  { url, child }: RunningServer,
  read: (res: IncomingMessage, child: ChildProcess) => unknown,
): Promise<Read> {
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

// After the exit of the process, network buffers are read without delay.
function readSlowly(res: IncomingMessage, child: ChildProcess): void {
  res.on('data', () => {
    if (child.exitCode !== null) return;
    res.pause();
    void setTimeout(200).then(() => res.resume());
  });
}
