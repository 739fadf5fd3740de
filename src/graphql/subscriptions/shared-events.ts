import type { GraphQLFormattedError } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Maximum number of characters of responses that are kept for further subscribers. */
const MAX_KEPT = 8_000_000;
const MAX_KEPT_ENTRY = 400_000;

/** One answer to a subscription, made once for all subscribers that asked for the same. */
export interface Delivery {
  /** The response, as JSON. */
  readonly text: string;
  readonly errors?: readonly GraphQLFormattedError[] | undefined;
  /** Where a client that was interrupted can go on, if it can. */
  readonly id?: string;
}

/** What subscribers are told of an event: made once for all that asked for the same. An event is an object of its own. */
export class Deliveries {
  private readonly numbers = new WeakMap<object, number>();
  private last = 0;
  private readonly pending = new Map<string, Promise<Delivery>>();
  private readonly kept = new LRUCache<string, Delivery>({
    maxSize: MAX_KEPT,
    maxEntrySize: MAX_KEPT_ENTRY,
    sizeCalculation: ({ text }, key) => text.length + key.length,
  });

  /** Returns what was made of this event for those who asked the same, or has it made. */
  of(asked: string, event: object, make: () => Promise<Delivery>): Delivery | Promise<Delivery> {
    const key = `${asked} ${this.numberOf(event)}`;
    return this.kept.get(key) ?? this.pending.get(key) ?? this.made(key, make());
  }

  private async made(key: string, making: Promise<Delivery>): Promise<Delivery> {
    this.pending.set(key, making);
    try {
      const delivery = await making;
      this.kept.set(key, delivery);
      return delivery;
    } finally {
      this.pending.delete(key);
    }
  }

  private numberOf(event: object): number {
    const number = this.numbers.get(event) ?? ++this.last;
    this.numbers.set(event, number);
    return number;
  }
}
