import { connect } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();

/** Encodings of a login. */
const login = () => JSON.stringify({ username: 'ada', password: PASSWORD });
const BODIES = {
  gzip: () => gzipSync(login()),
  deflate: () => deflateSync(login()),
  identity: () => Buffer.from(login()),
};

test.each(Object.keys(BODIES) as (keyof typeof BODIES)[])(
  'P16 a body whose client disconnects before its end has no effect: %s',
  async (coding) => {
    await shop.makeUser({ username: 'ada' });
    const body = BODIES[coding]();
    const socket = connect(shop.port, '127.0.0.1');
    socket.write(
      `POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body.subarray(0, -1));
    await new Promise((done) => setTimeout(done, 50));
    socket.destroy();
    await until(() => shop.logged.some((line) => line.includes('"end":"aborted"')), 'its line');
    expect(await shop.sql('select * from session')).toEqual([]);
  },
);

test('P24 an encoded body of more than 16 KB is rejected with 413, whatever its decoded size', async () => {
  const post = async (body: Buffer<ArrayBuffer>) => {
    const { status } = await fetch(`${shop.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
      body,
    });
    return status;
  };
  // Stored, not compressed.
  const stored = (size: number) =>
    gzipSync(Buffer.from('{"query":"{ __typename }"}'.padEnd(size - 23)), { level: 0 });
  expect(stored(16 * 1024)).toHaveLength(16 * 1024);
  expect(await post(stored(16 * 1024))).toBe(200);
  expect(await post(stored(16 * 1024 + 1))).toBe(413);
});
