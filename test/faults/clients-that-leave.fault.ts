import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolUsable, lockTables, openShopCluster, countLockWaits } from './cluster.ts';
import { memoryOf } from './memory.ts';
import { probe } from './serving.ts';
import { tokenOf } from './shopper.ts';

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
    await cluster.sql(`insert into product (name, barcode, price, created_at, updated_at)
      select 'Product ' || n, digits || (10 - (select sum(substr(digits, at, 1)::int * case when at % 2 = 0 then 3 else 1 end) from generate_series(1, 12) as at) % 10) % 10, 1, now(), now()
      from (select n, '28' || lpad(n::text, 10, '0') as digits from generate_series(1, ${context.short ? PRODUCTS / 10 : PRODUCTS}) as n) as made`);
    const token = await tokenOf(server.url);
    const before = await memoryOf(server);
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
    const port = Number(new URL(server.url).port);
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
    const after = await memoryOf(server);
    const lines = await shopCluster.close();
    const errors = lines.filter(({ level }) => Number(level) >= 50);
    assert.deepEqual(errors, []);
    return {
      'clients that left': clients + WAITING_CLIENTS,
      'statements left in PostgreSQL': 0,
      'lines of the log': lines.length,
      memory: `${before} MB before, ${after} MB after`,
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
  const digits = `29${String(at).padStart(10, '0')}`;
  const product = { name: `key-${at}`, barcode: digits + checkDigit(digits), price: 1 };
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
