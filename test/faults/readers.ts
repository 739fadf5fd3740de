import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { PATIENCE_MS, search } from './house.ts';

/** A refused reader waits so long, in ms, before it asks again. */
const AGAIN_MS = 20;

/** Clients that read for as long as they are let, on both doors, and note how that went. */
export class Readers {
  readonly statuses = new Map<number, number>();
  /** The longest that any answer took, in ms. */
  slowest = 0;
  /** When the last one was refused, as performance.now() has it. */
  refusedAt = 0;
  /** The longest that a refusal took since `forgetSlowest`, in ms. */
  slowestRefusal = 0;
  private stopped = false;
  private reading: Promise<unknown> | undefined;

  constructor(
    private readonly url: string,
    private readonly count: number,
  ) {}

  start(): void {
    this.reading = Promise.all(Array.from({ length: this.count }, (_, reader) => this.read(reader)));
    // Told of by `stop`.
    this.reading.catch(() => undefined);
  }

  /** Resolves when every reader has had its last answer. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.reading;
  }

  forgetSlowest(): void {
    this.slowestRefusal = 0;
  }

  /** Throws where any answer was neither good nor 503 with Retry-After. */
  assertOnlyRefused(): void {
    const others = [...this.statuses].filter(([status]) => status !== 200 && status !== 503);
    assert.deepEqual(others, [], 'answers of other statuses, with their number');
  }

  private async read(reader: number): Promise<void> {
    for (let time = 0; !this.stopped; time++) {
      const begun = performance.now();
      const answer = await this.ask(reader + time);
      await answer.arrayBuffer();
      const now = performance.now();
      this.slowest = Math.max(this.slowest, now - begun);
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
      if (answer.status !== 503) continue;
      assert.equal(answer.headers.get('Retry-After'), '1', '503 without Retry-After');
      this.refusedAt = now;
      this.slowestRefusal = Math.max(this.slowestRefusal, now - begun);
      await setTimeout(AGAIN_MS);
    }
  }

  private ask(turn: number): Promise<Response> {
    const pk = 1 + (turn % 1_000);
    const signal = AbortSignal.timeout(PATIENCE_MS);
    if (turn % 3 === 0) return fetch(`${this.url}/api/v1/shop/product/${pk}`, { signal });
    if (turn % 3 === 1) return search(this.url, `${pk}`);
    return fetch(`${this.url}/api/v2/shop/products?page=${1 + (pk % 100)}`, { signal });
  }
}
