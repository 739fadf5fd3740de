import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { readForm, readGraphqlText, readJson } from '../../src/server/body.ts';
import { Exchange } from '../../src/server/exchange.ts';
import { until } from '../support/until.ts';

/** What a client has sent so far, compressed and left in the middle. */
const TEXT = Buffer.from('x'.repeat(50_000));
const BODIES = { gzip: gzipSync(TEXT), deflate: deflateSync(TEXT), br: brotliCompressSync(TEXT), identity: TEXT };
const READERS = { '/graphql': readGraphqlText, '/json': readJson, '/form': readForm };

let server: Server;
let outcomes: string[] = [];

beforeAll(async () => {
  server = createServer((req, res) => {
    const exchange = new Exchange(
      req,
      res,
      {},
      {},
      () => false,
      () => undefined,
    );
    const read = READERS[req.url as keyof typeof READERS];
    read(exchange).then(
      () => outcomes.push('read'),
      () => outcomes.push('refused'),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterAll(() => void server.close());

test.each(Object.keys(READERS).flatMap((path) => Object.keys(BODIES).map((coding) => [path, coding] as const)))(
  'P16 reading it ends when the client leaves: %s, %s',
  async (path, coding) => {
    outcomes = [];
    const body = BODIES[coding as keyof typeof BODIES];
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const type = path === '/form' ? 'application/x-www-form-urlencoded' : 'application/json';
    const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: ${type}\r\nContent-Encoding: ${coding}\r\n`;
    const accepted = once(server, 'request');
    socket.write(`${head}Content-Length: 4000\r\n\r\n`);
    socket.write(body.subarray(0, Math.min(20, body.length - 1)));
    await accepted;
    socket.destroy();
    await until(() => outcomes.length > 0, 'the end of reading');
    expect(outcomes).toEqual(['refused']);
  },
);
