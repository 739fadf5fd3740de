import { get, type IncomingMessage } from 'node:http';
import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const LIST = '/api/v1/shop/products';
/** More than the socket buffers of both sides, so that the server has to wait for its reader. */
const MORE_THAN_BUFFERS = 8_000;
const LONG_NAME = '🧀'.repeat(255);

test('the whole list is ordered by pk, not by time of change, without deleted products', async () => {
  await stock(4_500);
  await shop.sql(`update product set name = 'Changed' where pk % 3 = 0`);
  await shop.sql('delete from product where pk % 5 = 0 or pk between 1900 and 2100');
  const expected = Array.from({ length: 4_500 }, (_, index) => index + 1).filter(
    (pk) => pk % 5 !== 0 && (pk < 1_900 || pk > 2_100),
  );
  const answer = await shop.rest('GET', LIST);
  expect(pks(answer.body)).toEqual(expected);
});

test('the whole list is streamed, without Content-Length', async () => {
  await shop.makeProduct();
  const { headers } = await shop.rest('GET', LIST);
  expect(headers.get('transfer-encoding')).toBe('chunked');
  expect(headers.get('content-length')).toBeNull();
});

test('the whole list has every product that exists throughout, once; clients that disconnect do not matter; a failure cuts it off', async () => {
  await stock(MORE_THAN_BUFFERS, LONG_NAME);
  const left = await Promise.all(Array.from({ length: 3 }, open));
  const reading = await open();
  await shop.sql(`delete from product where pk <= 10 or pk > ${MORE_THAN_BUFFERS - 10}`);
  await shop.makeProducts(2);
  for (const each of left) each.destroy();
  const all = pks(JSON.parse(await textOf(reading)));
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  const stayed = all.filter((pk) => pk > 10 && pk <= MORE_THAN_BUFFERS - 10);
  expect(stayed).toEqual(Array.from({ length: MORE_THAN_BUFFERS - 20 }, (_, index) => index + 11));
  expect(shop.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual(
    [],
  );

  const failing = await open();
  await shop.sql('alter table product rename to product_away');
  const text = textOf(failing);
  await expect(
    text.finally(() => shop.sql('alter table product_away rename to product')),
  ).rejects.toThrow('aborted');
});

/** Adds this many products, like an import. */
async function stock(count: number, name = 'Tray'): Promise<void> {
  const barcodes = Array.from({ length: count }, () => `'${shop.newBarcode()}'`).join();
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select '${name}', barcode, 1, now(), now() from unnest(array[${barcodes}]) as barcode`);
}

/** Requests the list and returns after its headers, before its body is read. */
function open(): Promise<IncomingMessage> {
  return new Promise(
    (done, fail) => void get(shop.url + LIST, { agent: false }, done).on('error', fail),
  );
}

async function textOf(reading: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of reading) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function pks(products: { pk: number }[]): number[] {
  return products.map(({ pk }) => pk);
}
