import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Measured } from './processes.ts';

const SAMPLE_MS = 10;

/** One reading of the whole catalogue. */
export interface Reading {
  /** Products a second. */
  rate: number;
  firstByteMs: number;
  /** MiB that the server held at most above what it held before. */
  added: number;
  rows: number;
}

/** Reads the whole catalogue once, and throws it away. */
export async function readAll(server: Measured, path = '/api/v1/shop/products'): Promise<Reading> {
  const before = server.memory().now;
  let most = before;
  const reading = { isOver: false };
  const watching = (async () => {
    while (!reading.isOver) {
      most = Math.max(most, server.memory().now);
      await setTimeout(SAMPLE_MS);
    }
  })();
  const start = performance.now();
  let first = 0;
  let rows = 0;
  await new Promise<void>((done, fail) => {
    request({ port: server.port, host: '127.0.0.1', path }, (res) => {
      res.on('data', (piece: Buffer) => {
        first ||= performance.now() - start;
        // Each product ends with one; none of them holds another.
        for (let at = piece.indexOf('}'); at >= 0; at = piece.indexOf('}', at + 1)) rows++;
      });
      res.on('end', done).on('error', fail);
    })
      .on('error', fail)
      .end();
  });
  const seconds = (performance.now() - start) / 1000;
  reading.isOver = true;
  await watching;
  return { rate: rows / seconds, firstByteMs: first, added: most - before, rows };
}
