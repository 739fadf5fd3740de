import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { demoUsers } from '../../src/features/demo-data.ts';
import { memoryAddedBy } from '../support/resident.ts';
import type { RunningServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { portOf, makeDatabase, QUIET, startShop } from './place.ts';

const POSTS = 1_000;
const SHORT_POSTS = 200;
/** Maximum size of a body. */
const BODY_BYTES = 16 * 1024;
const MAX_ADDED = 32;
const REJECTED_BYTES = 100 * 2 ** 20;
const MAX_ADDED_BY_REJECTED = 8;
const PATH = '/api/v1/shop/product/';

export const payloadMemory: Fault = {
  name: 'payload-memory',
  promise: `A thousand request bodies of 16 KB add at most ${MAX_ADDED} MiB of memory; a rejected body of 100 MB adds at most ${MAX_ADDED_BY_REJECTED} MiB.`,
  on: ['postgresql'],
  async run(context) {
    const { env } = await makeDatabase(context, QUIET);
    const server = await startShop(context, env);
    const key = await sessionKey(server);
    const posts = context.short ? SHORT_POSTS : POSTS;
    // Warms up.
    for (let count = 0; count < posts; count++) await post(server, key);
    const added = await memoryAddedBy(server, async () => {
      for (let count = 0; count < posts; count++) await post(server, key);
    });
    let answer = '';
    const byRejected = await memoryAddedBy(
      server,
      async () => void (answer = await endless(server, key)),
    );
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /\r\nConnection: close/);
    assert.ok(added <= MAX_ADDED, `the bodies added ${added.toFixed(0)} MiB`);
    assert.ok(
      byRejected <= MAX_ADDED_BY_REJECTED,
      `the rejected body added ${byRejected.toFixed(0)} MiB`,
    );
    return {
      bodies: posts,
      'added by them': `${added.toFixed(1)} MiB (goal: ${MAX_ADDED})`,
      'by the rejected one': `${byRejected.toFixed(1)} MiB (goal: ${MAX_ADDED_BY_REJECTED})`,
    };
  },
};

async function sessionKey({ url }: RunningServer): Promise<string> {
  const [user] = demoUsers;
  const body = JSON.stringify({ username: user?.username, password: user?.password });
  const answer = await fetch(`${url}/session/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  });
  return ((await answer.json()) as { session_key: string }).session_key;
}

// A name of that length is rejected after the body was parsed.
async function post({ url }: RunningServer, key: string): Promise<void> {
  const empty = JSON.stringify({ name: '', barcode: '4006381333931', price: 1 });
  const body = JSON.stringify({
    name: 'n'.repeat(BODY_BYTES - empty.length),
    barcode: '4006381333931',
    price: 1,
  });
  const headers = { 'Content-Type': 'application/json', 'X-SESSION-ID': key };
  const answer = await fetch(url + PATH, { method: 'POST', headers, body });
  assert.equal(answer.status, 422);
  await answer.arrayBuffer();
}

// Sends a chunked body of up to 100 MB. Returns the response.
function endless(server: RunningServer, key: string): Promise<string> {
  return new Promise((done) => {
    const piece = Buffer.alloc(64 * 1024, 'n');
    let [sent, answer] = [0, ''];
    const socket = connect(portOf(server), '127.0.0.1', () => {
      socket.write(
        `POST ${PATH} HTTP/1.1\r\nHost: a\r\nX-SESSION-ID: ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      send();
    });
    const send = (): void => {
      if (sent >= REJECTED_BYTES || !socket.writable) return;
      sent += piece.length;
      socket.write(`${piece.length.toString(16)}\r\n`);
      socket.write(piece);
      // Receives a response before the next write: a failed write destroys the socket.
      socket.write('\r\n', () => setImmediate(send));
    };
    socket.on('data', (more: Buffer) => (answer += more.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => done(answer));
  });
}
