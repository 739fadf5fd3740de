import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import type { Place } from './place.ts';
import { bearer, newBarcode } from './shopper.ts';

const WRITERS = 8;
/** A refused writer waits so long, in ms, before it tries again. */
const AGAIN_MS = 20;

interface Wanted {
  name: string;
  barcode: string;
  price: number;
}

/** How many answers of each status there were; 0 stands for a connection that broke. */
export type Statuses = Map<number, number>;

/**
 * Clients that add products for as long as they are let, and remember what was acknowledged with 201. Every other one names its
 * requests with an Idempotency-Key, and sends what was not answered again until it is.
 */
export class Writers {
  readonly acknowledged = new Map<string, Wanted>();
  readonly statuses: Statuses = new Map();
  /** The longest that any answer took, in ms. */
  slowest = 0;
  /** Answers of 503 that did not say when to ask again. */
  unsaid = 0;
  private readonly open: Wanted[] = [];
  private next = 0;
  private writing: Promise<unknown> | undefined;
  private stopped = false;
  private headers: Record<string, string> = {};
  private url = '';

  /** Begins to write to this server. */
  async start(url: string): Promise<void> {
    await this.turnTo(url);
    this.stopped = false;
    this.writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => this.write(writer % 2 === 0)));
  }

  /** Resolves when every writer has had its last answer. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.writing;
  }

  /** Sends what was not acknowledged, and has a key, again to this server. */
  async settle(url: string): Promise<void> {
    await this.turnTo(url);
    for (let wanted = this.open.pop(); wanted; wanted = this.open.pop()) {
      const status = await this.post(wanted, true);
      assert.equal(status, 201, `what was sent again with its key was answered ${status}`);
    }
  }

  private async turnTo(url: string): Promise<void> {
    this.url = url;
    this.headers = { 'Content-Type': 'application/json', ...(await bearer(url)) };
  }

  private async write(named: boolean): Promise<void> {
    while (!this.stopped) {
      const wanted = (named ? this.open.pop() : undefined) ?? this.make();
      const status = await this.post(wanted, named);
      if (status === 201) continue;
      if (named) this.open.push(wanted);
      await setTimeout(AGAIN_MS);
    }
  }

  private async post(wanted: Wanted, named: boolean): Promise<number> {
    const begun = performance.now();
    const headers = named ? { ...this.headers, 'Idempotency-Key': wanted.barcode } : this.headers;
    const body = JSON.stringify(wanted);
    let status = 0;
    try {
      const answer = await fetch(`${this.url}/api/v1/shop/product/`, { method: 'POST', headers, body });
      await answer.arrayBuffer();
      ({ status } = answer);
      if (status === 503 && !answer.headers.has('Retry-After')) this.unsaid++;
    } catch {
      // The server is gone, and nobody knows whether it was done.
    }
    this.slowest = Math.max(this.slowest, performance.now() - begun);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 201) this.acknowledged.set(wanted.barcode, wanted);
    return status;
  }

  private make(): Wanted {
    const count = this.next++;
    return { name: `Product ${count}`, barcode: newBarcode(), price: (count % 100_000) / 100 };
  }
}

/** Throws where anything that was acknowledged is not there as it was sent, anything is there by half, or the tally differs. */
export async function assertKept({ sql }: Place, url: string, { acknowledged }: Writers): Promise<void> {
  const rows = await sql(`select barcode, name, price::float8 as price from product where barcode like '29%'`);
  const there = new Map(rows.map((row) => [row['barcode'], row]));
  const lost = [...acknowledged.values()].filter(({ barcode, name, price }) => {
    const row = there.get(barcode);
    return row?.['name'] !== name || row['price'] !== price;
  });
  assert.deepEqual(lost, [], `${lost.length} of ${acknowledged.size} acknowledged rows are lost or changed`);
  const halves = await sql(
    `select key from idempotency_key left join product on barcode = key where product.pk is null or answer is null or (answer->>'pk')::bigint <> product.pk`,
  );
  assert.deepEqual(halves, [], 'keys are kept without their product');
  const [counted] = await sql('select count(*)::int as count from product');
  const page = (await (await fetch(`${url}/api/v2/shop/products`)).json()) as { count: number };
  assert.equal(page.count, counted?.['count'], 'the tally is not what is there');
}

/** Throws where there was an answer that nobody was promised. */
export function assertOnly({ statuses, unsaid }: Writers, allowed: readonly number[]): void {
  const others = [...statuses].filter(([status]) => !allowed.includes(status));
  assert.deepEqual(others, [], 'answers of other statuses, with their number');
  assert.equal(unsaid, 0, 'every 503 has Retry-After');
}
