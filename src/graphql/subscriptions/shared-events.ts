import type { GraphQLFormattedError } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Maximum number of characters of responses cached for further subscribers, and of one of them. */
const MAX_CACHED = 8_000_000;
const MAX_CACHED_ENTRY = 400_000;

/** Response of a subscription to an event, shared by all equal subscriptions. */
export interface SharedEvent {
  /** The response, as JSON. */
  readonly text: string;
  readonly errors?: readonly GraphQLFormattedError[] | undefined;
  /** Cursor for resuming after this event, if any. */
  readonly id?: string;
}

/** Makes the response to an event once for all equal subscriptions. Compares events by identity. */
export class SharedEvents {
  private readonly eventNumbers = new WeakMap<object, number>();
  private lastNumber = 0;
  private readonly pending = new Map<string, Promise<SharedEvent>>();
  private readonly cache = new LRUCache<string, SharedEvent>({
    maxSize: MAX_CACHED,
    maxEntrySize: MAX_CACHED_ENTRY,
    sizeCalculation: ({ text }, key) => text.length + key.length,
  });

  /** Returns the response to this event for this subscription key, or makes it. */
  get(
    subscriptionKey: string,
    event: object,
    make: () => Promise<SharedEvent>,
  ): SharedEvent | Promise<SharedEvent> {
    const key = `${subscriptionKey} ${this.numberOf(event)}`;
    return this.cache.get(key) ?? this.pending.get(key) ?? this.makeOnce(key, make());
  }

  private async makeOnce(key: string, making: Promise<SharedEvent>): Promise<SharedEvent> {
    this.pending.set(key, making);
    try {
      const sharedEvent = await making;
      this.cache.set(key, sharedEvent);
      return sharedEvent;
    } finally {
      this.pending.delete(key);
    }
  }

  private numberOf(event: object): number {
    const number = this.eventNumbers.get(event) ?? ++this.lastNumber;
    this.eventNumbers.set(event, number);
    return number;
  }
}
