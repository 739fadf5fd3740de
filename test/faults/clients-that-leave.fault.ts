import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolWhole, hold, openHouse, waitingFor } from './house.ts';
import { memoryOf } from './memory.ts';
import { probe } from './serving.ts';
import { tokenOf } from './shopper.ts';

const CLIENTS = 1_000;
const SHORT_CLIENTS = 100;
const AT_ONCE = 50;
/** In ms: some leave before their request has been read, some with half an answer. */
const STAYS_MS = 60;
const PRODUCTS = 200_000;
/** So many clients wait on a table that is held, and leave, at a time. */
const HELD = 40;

export const clientsThatLeave: Fault = {
  name: 'clients-that-leave',
  promise:
    'A thousand clients that go before their answer is out, reading, writing and listing everything: what PostgreSQL does for them is cancelled while what it waits for is still held, nothing is stored by half, the pool is whole, and nothing goes wrong on the way.',
  rows: ['F16'],
  on: ['postgresql'],
  async run(world) {
    const house = await openHouse(world);
    const { cluster, server } = house;
    await cluster.sql(`insert into product (name, barcode, price, created_at, updated_at)
      select 'Product ' || n, digits || (10 - (select sum(substr(digits, at, 1)::int * case when at % 2 = 0 then 3 else 1 end) from generate_series(1, 12) as at) % 10) % 10, 1, now(), now()
      from (select n, '28' || lpad(n::text, 10, '0') as digits from generate_series(1, ${world.short ? PRODUCTS / 10 : PRODUCTS}) as n) as made`);
    const token = await tokenOf(server.url);
    const before = await memoryOf(server);
    const requests = [
      () => get('/api/v2/shop/products?page=700'),
      () => get('/api/v1/shop/products'),
      (at: number) => post('/graphql', { query: `{ products(filter: { search: "uct ${at}" }) { totalCount nodes { pk } } }` }),
      (at: number) => create(at, token),
      (at: number) => create(at, token, `Idempotency-Key: key-${at}\r\n`),
    ];
    const clients = world.short ? SHORT_CLIENTS : CLIENTS;
    const port = Number(new URL(server.url).port);
    let next = 0;
    const visitor = async (): Promise<void> => {
      for (let at = next++; at < clients; at = next++) {
        const request = requests[at % requests.length]?.(at) ?? '';
        await leave(port, request, Math.random() * STAYS_MS);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, visitor));

    const release = await hold(cluster, 'product');
    world.atEnd(release);
    const gone = new AbortController();
    const waiting = Array.from({ length: HELD }, (_, at) => stay(port, requests[at % requests.length]?.(clients + at) ?? '', gone.signal));
    await until(async () => (await waitingFor(cluster)) >= house.poolMax, 'the pool to be taken');
    gone.abort();
    await Promise.all(waiting);
    await until(async () => (await waitingFor(cluster)) === 0, 'what nobody waits for to be cancelled');
    await release();

    assert.equal((await probe(`${server.url}/api/v2/shop/products`)).status, 200);
    await assertPoolWhole(house);
    const [halves] = await cluster.sql(
      `select count(*)::int as count from idempotency_key left join product on name = key where product.pk is null or answer is null`,
    );
    assert.equal(halves?.['count'], 0, 'a key is kept with its product, or neither is');
    const after = await memoryOf(server);
    const lines = await house.close();
    const errors = lines.filter(({ level }) => Number(level) >= 50);
    assert.deepEqual(errors, []);
    return {
      'clients that left': clients + HELD,
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

/** Asks, and is gone after so long. */
async function leave(port: number, request: string, ms: number): Promise<void> {
  const gone = new AbortController();
  const left = stay(port, request, gone.signal);
  await setTimeout(ms);
  gone.abort();
  await left;
}

/** Asks, and stays until it is told to go. */
async function stay(port: number, request: string, signal: AbortSignal): Promise<void> {
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  // Whatever comes is of no interest.
  socket.on('error', () => undefined).resume();
  signal.addEventListener('abort', () => socket.destroy());
  await once(socket, 'close');
}
