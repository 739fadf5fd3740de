import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { RESPONSE_TIMEOUT_MS, search } from './cluster.ts';

/** Delay before a rejected reader retries, in ms. */
const RETRY_MS = 20;

/** Clients that read by both APIs until they are stopped, and record statuses and times. */
export class Readers {
  readonly statuses = new Map<number, number>();
  /** Longest response time, in ms. */
  slowest = 0;
  /** Time of the last rejection (performance.now()). */
  rejectedAt = 0;
  /** Longest time of a rejection since `resetSlowestRejection`, in ms. */
  slowestRejection = 0;
  private stopped = false;
  private reading: Promise<unknown> | undefined;

  constructor(
    private readonly url: string,
    private readonly count: number,
    /** Delay after each response, in ms. */
    private readonly pauseMs = 0,
  ) {}

  start(): void {
    this.reading = Promise.all(
      Array.from({ length: this.count }, (_, reader) => this.read(reader)),
    );
    // Thrown by `stop`.
    this.reading.catch(() => undefined);
  }

  /** Resolves after the last response of every reader. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.reading;
  }

  resetSlowestRejection(): void {
    this.slowestRejection = 0;
  }

  /** Throws if a response was neither 200 nor 503 with Retry-After. */
  assertOnlyRejected(who = 'readers'): void {
    const others = [...this.statuses].filter(([status]) => status !== 200 && status !== 503);
    assert.deepEqual(others, [], `unexpected statuses and their counts: ${who}`);
  }

  private async read(reader: number): Promise<void> {
    for (let time = 0; !this.stopped; time++) {
      const begun = performance.now();
      const answer = await this.send(reader + time);
      await answer.arrayBuffer();
      const now = performance.now();
      this.slowest = Math.max(this.slowest, now - begun);
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
      if (this.pauseMs > 0) await setTimeout(this.pauseMs);
      if (answer.status !== 503) continue;
      assert.equal(answer.headers.get('Retry-After'), '1', '503 without Retry-After');
      this.rejectedAt = now;
      this.slowestRejection = Math.max(this.slowestRejection, now - begun);
      await setTimeout(RETRY_MS);
    }
  }

  private send(turn: number): Promise<Response> {
    const pk = 1 + (turn % 1_000);
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    if (turn % 3 === 0) return fetch(`${this.url}/api/v1/shop/product/${pk}`, { signal });
    if (turn % 3 === 1) return search(this.url, `${pk}`);
    return fetch(`${this.url}/api/v2/shop/products?page=${1 + (pk % 100)}`, { signal });
  }
}
