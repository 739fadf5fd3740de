import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { until } from '../support/until.ts';
import type { ShopDatabase } from './place.ts';
import type { Readers } from './readers.ts';
import { bearer, newBarcode } from '../support/shopper.ts';

const WRITERS = 8;
/** Delay before a rejected writer retries, in ms. */
const RETRY_MS = 20;

interface NewProduct {
  name: string;
  barcode: string;
  price: number;
}

interface StoredProduct extends NewProduct {
  /** As in the response. */
  pk: number;
}

/** Number of responses by status; 0 is a broken connection. */
export type Statuses = Map<number, number>;

/**
 * Clients that add products until they are stopped, and record the writes acknowledged with 201.
 * Every second one sends an Idempotency-Key, and repeats failed requests until they succeed.
 */
export class Writers {
  readonly acknowledged = new Map<string, StoredProduct>();
  readonly statuses: Statuses = new Map();
  /** Longest response time, in ms. */
  slowest = 0;
  /** Number of 503 responses without Retry-After. */
  withoutRetryAfter = 0;
  private readonly open: NewProduct[] = [];
  private next = 0;
  private writing: Promise<unknown> | undefined;
  private stopped = false;
  private headers: Record<string, string> = {};
  private url = '';

  constructor(
    private readonly count = WRITERS,
    /** Delay after each response, in ms. */
    private readonly pauseMs = 0,
  ) {}

  /** Starts to write to this server. */
  async start(url: string): Promise<void> {
    await this.signIn(url);
    this.stopped = false;
    this.writing = Promise.all(
      Array.from({ length: this.count }, (_, writer) => this.write(writer % 2 === 0)),
    );
  }

  /** Resolves after the last response of every writer. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.writing;
  }

  /** Waits until this many more rows are acknowledged. */
  async more(rows: number, who = 'writers'): Promise<void> {
    const enough = this.acknowledged.size + rows;
    await until(() => this.acknowledged.size >= enough, `enough acknowledged rows by ${who}`);
  }

  /** Repeats unacknowledged requests with a key on this server. */
  async resend(url: string): Promise<void> {
    await this.signIn(url);
    for (let product = this.open.pop(); product; product = this.open.pop()) {
      const status = await this.post(product, true);
      assert.equal(status, 201, `a request repeated with its key returned ${status}`);
    }
  }

  private async signIn(url: string): Promise<void> {
    this.url = url;
    this.headers = { 'Content-Type': 'application/json', ...(await bearer(url)) };
  }

  private async write(withKey: boolean): Promise<void> {
    while (!this.stopped) {
      const product = (withKey ? this.open.pop() : undefined) ?? this.make();
      const status = await this.post(product, withKey);
      if (this.pauseMs > 0) await setTimeout(this.pauseMs);
      if (status === 201) continue;
      if (withKey) this.open.push(product);
      await setTimeout(RETRY_MS);
    }
  }

  private async post(product: NewProduct, withKey: boolean): Promise<number> {
    const begun = performance.now();
    const headers = withKey
      ? { ...this.headers, 'Idempotency-Key': product.barcode }
      : this.headers;
    const body = JSON.stringify(product);
    let status = 0;
    try {
      const answer = await fetch(`${this.url}/api/v1/shop/product/`, {
        method: 'POST',
        headers,
        body,
      });
      const text = await answer.text();
      ({ status } = answer);
      if (status === 201)
        this.acknowledged.set(product.barcode, {
          ...product,
          pk: (JSON.parse(text) as StoredProduct).pk,
        });
      if (status === 503 && !answer.headers.has('Retry-After')) this.withoutRetryAfter++;
    } catch {
      // The server is gone; the outcome is unknown.
    }
    this.slowest = Math.max(this.slowest, performance.now() - begun);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    return status;
  }

  private make(): NewProduct {
    const count = this.next++;
    return { name: `Product ${count}`, barcode: newBarcode(), price: (count % 100_000) / 100 };
  }
}

/**
 * Stops the clients, and repeats unacknowledged requests. Throws if an acknowledged product is lost
 * or changed, a write is partial, the row counts differ, or a status was unexpected.
 */
export async function assertKept(
  database: Pick<ShopDatabase, 'sql'>,
  url: string,
  writers: Writers,
  readers?: Readers,
  allowed: readonly number[] = [201, 503],
): Promise<void> {
  await Promise.all([writers.stop(), readers?.stop()]);
  await writers.resend(url);
  await assertStored(database, url, writers);
  assertOnly(writers, allowed);
  readers?.assertOnlyRejected();
}

/**
 * Throws if an acknowledged product is lost or changed, a write is partial, or the row counts
 * differ.
 */
export async function assertStored(
  database: Pick<ShopDatabase, 'sql'>,
  url: string,
  writers: Writers,
): Promise<void> {
  const lost = await findLost(database, writers);
  assert.deepEqual(
    lost,
    [],
    `${lost.length} of ${writers.acknowledged.size} acknowledged rows are lost or changed`,
  );
  const partial = await database.sql(
    `select key from idempotency_key left join product on barcode = key where product.pk is null or answer is null or (answer->>'pk')::bigint <> product.pk`,
  );
  assert.deepEqual(partial, [], 'keys are stored without their product');
  await assertCount(database, url);
}

/** Returns the acknowledged products that are lost or changed. */
export async function findLost(
  { sql }: Pick<ShopDatabase, 'sql'>,
  { acknowledged }: Writers,
): Promise<NewProduct[]> {
  const rows = await sql(
    `select barcode, name, price::float8 as price from product where barcode like '29%'`,
  );
  const stored = new Map(rows.map((row) => [row['barcode'], row]));
  return [...acknowledged.values()].filter(({ barcode, name, price }) => {
    const row = stored.get(barcode);
    return row?.['name'] !== name || row['price'] !== price;
  });
}

/** Throws if the instance counts other products than are stored. */
export async function assertCount({ sql }: Pick<ShopDatabase, 'sql'>, url: string): Promise<void> {
  const [counted] = await sql('select count(*)::int as count from product');
  const page = (await (await fetch(`${url}/api/v2/shop/products`)).json()) as { count: number };
  assert.equal(page.count, counted?.['count'], 'the row count is wrong');
}

/** Throws if there was a response with another status, or a 503 without Retry-After. */
export function assertOnly(
  { statuses, withoutRetryAfter }: Writers,
  allowed: readonly number[],
  who = 'writers',
): void {
  const others = [...statuses].filter(([status]) => !allowed.includes(status));
  assert.deepEqual(others, [], `unexpected statuses and their counts: ${who}`);
  assert.equal(withoutRetryAfter, 0, 'every 503 has Retry-After');
}
