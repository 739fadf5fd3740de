import type { DocumentNode } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { unavailableError } from '../http/http-error.ts';
import { sizeOf } from './documents.ts';

/** Maximum number of bytes of documents and variables: of all subscriptions, and per network. */
const MAX_BYTES = 64_000_000;
const MAX_NETWORK_BYTES = 16_000_000;
/** Approximate number of further bytes that a subscription uses. */
const SUBSCRIPTION_BYTES = 5_000;
/** Seconds after which a rejected client should retry. */
const RETRY_S = 5;

interface PooledDocument {
  readonly document: DocumentNode;
  readonly size: number;
  users: number;
}

/** Memory used by the subscriptions of one network. */
interface NetworkUsage {
  bytes: number;
  subscriptions: number;
  readonly users: Map<PooledDocument, number>;
}

/**
 * Documents in use by subscriptions, each stored once. Limits the memory of documents and
 * variables.
 */
export class DocumentPool {
  private readonly documents = new Map<string, PooledDocument>();
  private readonly usageByNetwork = new Map<string, NetworkUsage>();
  private bytes = 0;

  constructor(
    /** Maximum number of subscriptions per network. */
    private readonly maxPerNetwork: number,
  ) {}

  /** Returns the parsed and validated document of this text if it is in use. */
  get(text: string): DocumentNode | undefined {
    return this.documents.get(text)?.document;
  }

  /**
   * Adds a subscription with this document and this size of variables. Returns a function that
   * releases both. Throws UNAVAILABLE if all subscriptions use too much memory, and RATE_LIMITED if
   * those of this network do, or are too many.
   */
  acquire(
    network: string,
    text: string,
    document: DocumentNode,
    variableBytes: number,
  ): () => void {
    const ownBytes = variableBytes + SUBSCRIPTION_BYTES;
    const pooled = this.documents.get(text) ?? { document, size: sizeOf(document), users: 0 };
    const usage = this.usageByNetwork.get(network) ?? {
      bytes: 0,
      subscriptions: 0,
      users: new Map<PooledDocument, number>(),
    };
    const networkUsers = usage.users.get(pooled) ?? 0;
    const addedBytes = ownBytes + (pooled.users === 0 ? pooled.size : 0);
    const addedNetworkBytes = ownBytes + (networkUsers === 0 ? pooled.size : 0);
    if (usage.subscriptions >= this.maxPerNetwork) {
      throw new DomainError(
        'RATE_LIMITED',
        'Too many subscriptions from this address',
        [],
        RETRY_S,
      );
    }
    if (usage.bytes + addedNetworkBytes > MAX_NETWORK_BYTES) {
      throw new DomainError(
        'RATE_LIMITED',
        'The subscriptions from this address use too much memory',
        [],
        RETRY_S,
      );
    }
    if (this.bytes + addedBytes > MAX_BYTES) throw unavailableError();
    this.documents.set(text, pooled);
    this.usageByNetwork.set(network, usage);
    this.bytes += addedBytes;
    pooled.users++;
    usage.bytes += addedNetworkBytes;
    usage.subscriptions++;
    usage.users.set(pooled, networkUsers + 1);
    return () => this.release(network, text, ownBytes);
  }

  private release(network: string, text: string, ownBytes: number): void {
    const [pooled, usage] = [this.documents.get(text), this.usageByNetwork.get(network)];
    if (!pooled || !usage) return;
    this.bytes -= ownBytes;
    usage.bytes -= ownBytes;
    usage.subscriptions--;
    const networkUsers = (usage.users.get(pooled) ?? 1) - 1;
    if (networkUsers > 0) usage.users.set(pooled, networkUsers);
    else {
      usage.users.delete(pooled);
      usage.bytes -= pooled.size;
    }
    if (usage.users.size === 0) this.usageByNetwork.delete(network);
    if (--pooled.users > 0) return;
    this.documents.delete(text);
    this.bytes -= pooled.size;
  }
}
