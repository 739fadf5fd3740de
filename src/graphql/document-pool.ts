import type { DocumentNode } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { unavailable } from '../http/http-error.ts';
import { sizeOf, withoutTokens } from './documents.ts';

/** Maximum number of bytes of the documents and variables of all subscriptions, and of those from one network. */
const MAX_BYTES = 64_000_000;
const MAX_NETWORK_BYTES = 16_000_000;
/** What a subscription takes besides, in bytes, about. */
const SUBSCRIPTION_BYTES = 5_000;
/** When a rejected client should retry, in seconds. */
const RETRY_S = 5;

interface Held {
  readonly document: DocumentNode;
  readonly size: number;
  users: number;
}

/** What the subscriptions from one network hold. */
interface Share {
  bytes: number;
  subscriptions: number;
  readonly users: Map<Held, number>;
}

/** The documents of subscriptions, each once for all that use it and for as long as one does. What they and variables take is bounded. */
export class HeldDocuments {
  private readonly held = new Map<string, Held>();
  private readonly shares = new Map<string, Share>();
  private bytes = 0;

  constructor(
    /** Maximum number of subscriptions from one network. */
    private readonly maxOfNetwork: number,
  ) {}

  /** Returns the document of this text, parsed and validated before, where it is in use. */
  get(text: string): DocumentNode | undefined {
    return this.held.get(text)?.document;
  }

  /**
   * Holds the document of this text, and so many bytes of variables, until what this returns is called. Throws UNAVAILABLE if all
   * subscriptions hold too much, and RATE_LIMITED if those from this network do or are too many.
   */
  hold(network: string, text: string, document: DocumentNode, variables: number): () => void {
    const own = variables + SUBSCRIPTION_BYTES;
    const held = this.held.get(text) ?? { document, size: sizeOf(document), users: 0 };
    const share = this.shares.get(network) ?? { bytes: 0, subscriptions: 0, users: new Map<Held, number>() };
    const usersHere = share.users.get(held) ?? 0;
    const added = own + (held.users === 0 ? held.size : 0);
    const addedHere = own + (usersHere === 0 ? held.size : 0);
    if (share.subscriptions >= this.maxOfNetwork) {
      throw new DomainError('RATE_LIMITED', 'There are too many subscriptions from this address', [], RETRY_S);
    }
    if (share.bytes + addedHere > MAX_NETWORK_BYTES) {
      throw new DomainError('RATE_LIMITED', 'The subscriptions from this address take too much memory', [], RETRY_S);
    }
    if (this.bytes + added > MAX_BYTES) throw unavailable();
    if (held.users === 0) withoutTokens(document);
    this.held.set(text, held);
    this.shares.set(network, share);
    this.bytes += added;
    held.users++;
    share.bytes += addedHere;
    share.subscriptions++;
    share.users.set(held, usersHere + 1);
    return () => this.release(network, text, own);
  }

  private release(network: string, text: string, own: number): void {
    const [held, share] = [this.held.get(text), this.shares.get(network)];
    if (!held || !share) return;
    this.bytes -= own;
    share.bytes -= own;
    share.subscriptions--;
    const usersHere = (share.users.get(held) ?? 1) - 1;
    if (usersHere > 0) share.users.set(held, usersHere);
    else {
      share.users.delete(held);
      share.bytes -= held.size;
    }
    if (share.users.size === 0) this.shares.delete(network);
    if (--held.users > 0) return;
    this.held.delete(text);
    this.bytes -= held.size;
  }
}
