import { LRUCache } from 'lru-cache';
import type { Context } from '../request/context.ts';
import { counters, gauge } from '../core/metrics.ts';
import { cachedVersion, versionOf } from '../pagination/row-counts.ts';
import { CompressedForms, type Body } from './compression.ts';
import type { Route } from '../api/route.ts';
import type { Operation } from '../telemetry/request-record.ts';

/** Maximum size of the cache, and of a cached body, in characters. */
const MAX_CHARACTERS = 16_000_000;
const MAX_BODY = 200_000;
/** Maximum size of a body with its key and its compressed forms. */
const MAX_ENTRY = 3 * MAX_BODY;
/** Maximum length of a key, in characters: a key is remembered as a whole. */
const MAX_KEY = 10_000;
/** Maximum number of remembered keys of earlier requests. */
const MAX_RECENT_KEYS = 1_000;

const lookups = counters(
  'shopfront_response_cache_lookups_total',
  'Lookups in the response cache by outcome.',
  'outcome',
  ['hit', 'miss'],
);

/** A response that is the same for all callers. */
export interface CachedResponse extends Body {
  headers?: Readonly<Record<string, string>>;
  /** Endpoint, on the REST API. */
  route?: Route;
  /** Entity tag, if clients may cache the response (http-cache.ts). */
  tag?: string;
  /** Operation, on the GraphQL API. */
  operation?: Operation;
}

interface Entry {
  response: CachedResponse;
  rowCounts: string;
  /** Version of the table before the response was made, and its server. */
  revision: string;
}

/**
 * Caches responses of public reads until their table changes. The version of the table is at most
 * as old as pagination/row-counts.ts allows.
 */
export class ResponseCache {
  private readonly entries = new LRUCache<string, Entry>({
    maxSize: MAX_CHARACTERS,
    maxEntrySize: MAX_ENTRY,
    sizeCalculation: ({ response }, key) =>
      response.body.length + key.length + (response.forms?.bytes ?? 0),
  });
  private recentKeys = new Set<string>();
  private olderKeys = new Set<string>();
  private readonly pending = new Map<
    string,
    { revision: string; response: Promise<CachedResponse | undefined> }
  >();

  constructor() {
    gauge(
      'shopfront_response_cache_entries',
      'Responses in the response cache.',
      () => this.entries.size,
    );
  }

  /** Returns the cached response if it is known to be current. */
  find(ctx: Pick<Context, 'statements'>, key: string): CachedResponse | undefined {
    const entry = this.entries.get(key);
    if (!entry || cachedVersion(ctx, entry.rowCounts)?.revision !== entry.revision)
      return undefined;
    lookups.hit++;
    return entry.response;
  }

  /** Returns the cached response if it has this body. */
  stored(key: string, body: string): CachedResponse | undefined {
    const response = this.entries.peek(key)?.response;
    return response?.body === body ? response : undefined;
  }

  /**
   * Returns the current cached response, a pending one, or the result of `make`, and caches that
   * unless it is undefined. Throws the errors of `make` and of reading the table's version.
   */
  async getOrMake<Made extends CachedResponse | undefined>(
    ctx: Context,
    key: string,
    rowCounts: string,
    make: () => Promise<Made>,
  ): Promise<CachedResponse | Made> {
    // Responses are cached from the second request on, because most keys occur only once.
    if (key.length > MAX_KEY) return make();
    if (!this.recentKeys.has(key) && !this.olderKeys.has(key)) {
      lookups.miss++;
      this.remember(key);
      return this.makeFirst(key, make);
    }
    const { revision } = await versionOf(ctx, rowCounts);
    const entry = this.entries.get(key);
    const pending = this.pending.get(key);
    if (entry?.revision === revision || pending?.revision === revision) lookups.hit++;
    else lookups.miss++;
    if (entry?.revision === revision) return entry.response;
    if (pending?.revision === revision) return (await pending.response) ?? make();
    // A response cached under the primary's version must be read from the primary: a lagging
    // replica's rows would be cached as current.
    delete ctx.replica;
    const made = make().then((response) => this.store(key, response, rowCounts, revision));
    const own = { revision, response: made.catch(() => undefined) };
    this.pending.set(key, own);
    try {
      return await made;
    } finally {
      if (this.pending.get(key) === own) this.pending.delete(key);
    }
  }

  private store<Made extends CachedResponse | undefined>(
    key: string,
    response: Made,
    rowCounts: string,
    revision: string,
  ): Made {
    if (!response || response.body.length > MAX_BODY) return response;
    const put = () => this.entries.set(key, { response, rowCounts, revision });
    // A new form changes the size of a cached entry. The cache measures only a new object again.
    response.forms = new CompressedForms(
      response.body,
      () => this.entries.peek(key)?.response === response && put(),
    );
    put();
    return response;
  }

  // Rejected requests are not remembered, so that later ones are also rejected without a query for
  // the table's version.
  private async makeFirst<Made>(key: string, make: () => Promise<Made>): Promise<Made> {
    let made: Made | undefined;
    try {
      return (made = await make());
    } finally {
      if (made === undefined) {
        this.recentKeys.delete(key);
        this.olderKeys.delete(key);
      }
    }
  }

  // Keeps the latest keys in two halves, and drops the older half as a whole.
  private remember(key: string): void {
    this.recentKeys.add(key);
    if (this.recentKeys.size < MAX_RECENT_KEYS / 2) return;
    this.olderKeys = this.recentKeys;
    this.recentKeys = new Set();
  }
}
