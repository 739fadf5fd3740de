import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { MeasuredServer } from './processes.ts';

const SAMPLE_MS = 10;

/** Figures of one read of the whole catalogue. */
export interface WholeRead {
  /** Products per second. */
  rate: number;
  firstByteMs: number;
  /** Peak memory during the read, in MiB above the memory before. */
  added: number;
  rows: number;
}

/** Reads the whole catalogue once, and discards it. */
export async function readAll(
  server: MeasuredServer,
  path = '/api/v1/shop/products',
): Promise<WholeRead> {
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
        // Each product has exactly one.
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
