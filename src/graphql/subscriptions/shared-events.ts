import type { FormattedExecutionResult } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Maximum number of characters of responses cached for further subscribers, and of one of them. */
const MAX_CACHED = 8_000_000;
const MAX_CACHED_ENTRY = 400_000;

/** Response of a subscription to an event, shared by all equal subscriptions. */
export interface SharedEvent {
  readonly response: FormattedExecutionResult;
  /** Number of characters of its JSON. */
  readonly size: number;
  /** Cursor for resuming after this event, if any. */
  readonly cursor?: string | undefined;
}

/** Makes the response to an event once for all equal subscriptions. Compares events by identity. */
export class SharedEvents {
  private readonly eventNumbers = new WeakMap<object, number>();
  private lastNumber = 0;
  private readonly cache = new LRUCache<string, SharedEvent, () => Promise<SharedEvent>>({
    maxSize: MAX_CACHED,
    maxEntrySize: MAX_CACHED_ENTRY,
    sizeCalculation: ({ size }, key) => size + key.length,
    // A response that the cache has no more space for is still sent.
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context: make }) => make(),
  });

  /** Returns the response to this event for this subscription key, or makes it. */
  get(key: string, event: object, make: () => Promise<SharedEvent>): Promise<SharedEvent> {
    const number = this.eventNumbers.get(event) ?? ++this.lastNumber;
    this.eventNumbers.set(event, number);
    return this.cache.forceFetch(`${key} ${number}`, { context: make });
  }
}
