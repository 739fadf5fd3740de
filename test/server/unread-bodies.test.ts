import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const KB = 1024;
const TURNS = 20;
const JSON_TYPE = { 'Content-Type': 'application/json' };

const shop = useShop();

/** Rejections before the body is read, and one while it is. */
const REJECTIONS: [string, string, string, Record<string, string>, number][] = [
  ['a form in place of JSON', 'POST', '/session/login', {}, 415],
  ['a form in place of JSON, at GraphQL', 'POST', '/graphql', {}, 415],
  ['a form of another kind', 'POST', '/token', { 'Content-Type': 'multipart/mixed' }, 415],
  ['no credentials', 'POST', '/api/v1/shop/product/', {}, 401],
  ['bad credentials', 'POST', '/api/v1/shop/product/', { Authorization: 'Bearer x' }, 401],
  ['an unknown path', 'POST', '/nothing', {}, 404],
  ['a method that the path does not support', 'PUT', '/blog', {}, 405],
  ['too much JSON', 'POST', '/session/login', JSON_TYPE, 413],
];

describe.each(REJECTIONS)('%s', (_what, method, path, headers, status) => {
  test.each([4, 60])('a client that sends %d KB reads the rejection, repeatedly', async (size) => {
    // A body within the limit is read, and is not JSON.
    const expected = status === 413 && size === 4 ? 400 : status;
    const statuses: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const body = status === 413 ? 'x'.repeat(size * KB) : form(size);
      const answer = await fetch(shop.url + path, { method, headers, body });
      await answer.text();
      statuses.push(answer.status);
    }
    expect(statuses).toEqual(Array(TURNS).fill(expected));
  });

  test('so does a client that sends no Content-Length', async () => {
    for (let turn = 0; turn < TURNS; turn++) {
      const body = new Blob(['x'.repeat(60 * KB)]).stream();
      const answer = await fetch(shop.url + path, {
        method,
        headers: { 'Content-Type': 'text/plain', ...headers },
        body,
        duplex: 'half',
      });
      await answer.text();
      expect(answer.status).toBe(status);
    }
  });

  test.each([
    ['with its length', `Content-Length: ${60 * KB}\r\n`, 'x'.repeat(60 * KB)],
    [
      'in chunks',
      'Transfer-Encoding: chunked\r\n',
      `${(60 * KB).toString(16)}\r\n${'x'.repeat(60 * KB)}\r\n0\r\n\r\n`,
      // Without a first chunk, the body may be empty.
      '1\r\nx\r\n',
    ],
  ])(
    'a body that arrives after the response, %s, does not reset the connection',
    async (_how, framing, body, first = '') => {
      const lines = Object.entries({ 'Content-Type': 'text/plain', ...headers }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      const head = `${method} ${path} HTTP/1.1\r\nHost: shop\r\n${lines.join('')}${framing}\r\n${first}`;
      const { answer, error } = await converse(head, body);
      expect(error).toBeUndefined();
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    },
  );
});

/** Sends the head, and the body once the response has arrived. */
async function converse(head: string, body: string): Promise<{ answer: string; error: unknown }> {
  const socket = connect(shop.port, '127.0.0.1');
  let answer = '';
  let error: unknown;
  socket.on('error', (thrown) => (error = thrown));
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  socket.write(head);
  // A rejection while the body is read has no response before it.
  if (!/json/.test(head)) await once(socket, 'data');
  // In chunks, so that some are sent after the response has been read.
  for (let at = 0; at < body.length; at += 8 * KB) {
    if (!socket.writable) break;
    await new Promise((done) => socket.write(body.slice(at, at + 8 * KB), done));
  }
  socket.end();
  await new Promise((done) => (socket.closed ? done(undefined) : socket.once('close', done)));
  return { answer, error };
}

function form(size: number): FormData {
  const data = new FormData();
  data.set('file', new Blob(['x'.repeat(size * KB)]), 'file.txt');
  return data;
}
