import { LRUCache } from 'lru-cache';
import type { Context } from '../request/context.ts';
import { counters } from '../core/metrics.ts';
import { cachedCounts, recentCounts } from '../pagination/row-counts.ts';
import type { Coding } from './responses.ts';
import type { Route } from '../api/route.ts';
import type { Operation } from '../telemetry/request-record.ts';

/** Maximum size of the cache, and of a cached body, in characters. */
const MAX_CHARACTERS = 16_000_000;
const MAX_BODY = 200_000;
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
export interface CachedResponse {
  body: string;
  /** Compressed forms, while the response is stored. */
  forms?: Map<Coding, Promise<Buffer>>;
  /** Entity tag, if clients may cache the response. */
  tag?: string;
  headers?: Readonly<Record<string, string>>;
  /** Headers with which `sendAgain` sends the response. */
  shared?: readonly string[];
  /** Endpoint, on the REST API. */
  rest?: Route;
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
    // With the compressed forms, which together are shorter than the body.
    sizeCalculation: ({ response: { body } }, key) => 2 * body.length + key.length,
  });
  private readonly recentKeys = new LRUCache<string, true>({ max: MAX_RECENT_KEYS });
  private readonly pending = new Map<
    string,
    { revision: string; response: Promise<CachedResponse | undefined> }
  >();

  /** Returns the cached response if it is known to be current. */
  find(ctx: Pick<Context, 'statements'>, key: string): CachedResponse | undefined {
    const entry = this.entries.get(key);
    if (!entry || cachedCounts(ctx, entry.rowCounts)?.revision !== entry.revision) return undefined;
    lookups.hit++;
    return entry.response;
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
    if (!this.recentKeys.get(key)) {
      lookups.miss++;
      this.recentKeys.set(key, true);
      let made: Made | undefined;
      try {
        return (made = await make());
      } finally {
        // Later rejected requests are also rejected without a query for the table's version.
        if (made === undefined) this.recentKeys.delete(key);
      }
    }
    const { revision } = await recentCounts(ctx, rowCounts);
    const entry = this.entries.get(key);
    const pending = this.pending.get(key);
    if (entry?.revision === revision || pending?.revision === revision) lookups.hit++;
    else lookups.miss++;
    if (entry?.revision === revision) return entry.response;
    if (pending?.revision === revision) return (await pending.response) ?? make();
    // A response cached under the primary's version must be read from the primary: a lagging
    // replica's rows would be cached as current.
    delete ctx.replica;
    const made = make().then((response) => {
      if (response && response.body.length <= MAX_BODY) {
        response.forms = new Map();
        this.entries.set(key, { response, rowCounts, revision });
      }
      return response;
    });
    const own = { revision, response: made.catch(() => undefined) };
    this.pending.set(key, own);
    try {
      return await made;
    } finally {
      if (this.pending.get(key) === own) this.pending.delete(key);
    }
  }
}
