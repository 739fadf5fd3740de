import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { memoryOf } from '../support/resident.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolUsable, lockTables, openShopCluster, countLockWaits } from './cluster.ts';
import { addProducts, portOf } from './place.ts';
import { probe } from './serving.ts';
import { newBarcode, tokenOf } from '../support/shopper.ts';

const CLIENTS = 1_000;
const SHORT_CLIENTS = 100;
const AT_ONCE = 50;
/**
 * Maximum time until a client disconnects, in ms: before its request is read, or during the
 * response.
 */
const MAX_STAY_MS = 60;
const PRODUCTS = 200_000;
/** Number of clients that wait for a locked table, and disconnect. */
const WAITING_CLIENTS = 40;

export const clientsThatLeave: Fault = {
  name: 'clients-that-leave',
  promise:
    'When 1,000 clients disconnect before they receive a response, their statements are cancelled in PostgreSQL, nothing is stored partially, all pool connections are usable again, and no error is logged.',
  on: ['postgresql'],
  async run(context) {
    const shopCluster = await openShopCluster(context);
    const { cluster, server } = shopCluster;
    await addProducts(cluster, context.short ? PRODUCTS / 10 : PRODUCTS);
    const token = await tokenOf(server.url);
    const before = memoryOf(server);
    const requests = [
      () => get('/api/v2/shop/products?page=700'),
      () => get('/api/v1/shop/products'),
      (at: number) =>
        post('/graphql', {
          query: `{ products(filter: { search: "uct ${at}" }) { totalCount nodes { pk } } }`,
        }),
      (at: number) => create(at, token),
      (at: number) => create(at, token, `Idempotency-Key: key-${at}\r\n`),
    ];
    const clients = context.short ? SHORT_CLIENTS : CLIENTS;
    const port = portOf(server);
    let next = 0;
    const visitor = async (): Promise<void> => {
      for (let at = next++; at < clients; at = next++) {
        const request = requests[at % requests.length]?.(at) ?? '';
        await sendAndDisconnect(port, request, Math.random() * MAX_STAY_MS);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, visitor));

    const release = await lockTables(cluster, 'product');
    context.atEnd(release);
    const gone = new AbortController();
    const waiting = Array.from({ length: WAITING_CLIENTS }, (_, at) =>
      sendUntilAborted(port, requests[at % requests.length]?.(clients + at) ?? '', gone.signal),
    );
    await until(
      async () => (await countLockWaits(cluster)) >= shopCluster.poolMax,
      'the pool to be exhausted',
    );
    gone.abort();
    await Promise.all(waiting);
    await until(
      async () => (await countLockWaits(cluster)) === 0,
      'the cancellation of all statements',
    );
    await release();

    assert.equal((await probe(`${server.url}/api/v2/shop/products`)).status, 200);
    await assertPoolUsable(shopCluster);
    const [partial] = await cluster.sql(
      `select count(*)::int as count from idempotency_key left join product on name = key where product.pk is null or answer is null`,
    );
    assert.equal(partial?.['count'], 0, 'a key is stored with its product, or neither is');
    const after = memoryOf(server);
    const lines = await shopCluster.close();
    const errors = lines.filter(({ level }) => Number(level) >= 50);
    assert.deepEqual(errors, []);
    return {
      'clients that left': clients + WAITING_CLIENTS,
      'statements left in PostgreSQL': 0,
      'lines of the log': lines.length,
      memory: `${before.toFixed(0)} MB before, ${after.toFixed(0)} MB after`,
    };
  },
};

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`;
}

function post(path: string, json: unknown, headers = ''): string {
  const body = JSON.stringify(json);
  return `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
}

function create(at: number, token: string, headers = ''): string {
  const product = { name: `key-${at}`, barcode: newBarcode(), price: 1 };
  return post('/api/v1/shop/product/', product, `Authorization: Bearer ${token}\r\n${headers}`);
}

/** Sends a request and disconnects after this time. */
async function sendAndDisconnect(port: number, request: string, ms: number): Promise<void> {
  const gone = new AbortController();
  const left = sendUntilAborted(port, request, gone.signal);
  await setTimeout(ms);
  gone.abort();
  await left;
}

/** Sends a request and disconnects at the signal. */
async function sendUntilAborted(port: number, request: string, signal: AbortSignal): Promise<void> {
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  // The response is ignored.
  socket.on('error', () => undefined).resume();
  signal.addEventListener('abort', () => socket.destroy());
  await once(socket, 'close');
}
