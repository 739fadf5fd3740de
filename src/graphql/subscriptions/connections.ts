import type { IncomingMessage } from 'node:http';
import { findExpired } from '../../features/auth/callers.ts';
import type { Caller } from '../../request/context.ts';
import type { DomainError } from '../../core/errors.ts';
import { gauge } from '../../core/metrics.ts';
import { NetworkLimit } from '../../core/network-limit.ts';
import { unavailableError, type HttpError } from '../../http/http-error.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import type { TrustedDocuments } from '../trusted-documents.ts';
import type { Subscriptions } from './subscription.ts';

/** Interval between checks of the connections' credentials, in milliseconds. */
const CHECK_INTERVAL_MS = 500;

/** A connection with subscriptions: a WebSocket or an event stream. */
export interface SubscriberConnection {
  readonly network: string;
  /** The authenticated caller, once known. */
  readonly caller: Caller | undefined;
  /** Ends the connection because the caller's credentials are no longer valid. */
  endExpired(refusal: DomainError): void;
  /** Ends the connection for a shutdown, so that the client reconnects to another process. */
  endForShutdown(): void;
}

/** State shared by the WebSocket and server-sent events transports. */
export interface SubscriptionConnections {
  dependencies: Dependencies;
  registry: SubscriptionRegistry;
  /** Returns whether new WebSockets are rejected. */
  isOverloaded: () => boolean;
  /** Errors of WebSocket handshakes that were rejected, for their responses. */
  upgradeErrors: WeakMap<IncomingMessage, DomainError | HttpError>;
  subscriptions: Subscriptions;
  /** Undefined if any document may run. */
  trusted: TrustedDocuments | undefined;
}

/** The subscription connections of this process. Checks all their credentials by one statement. */
export class SubscriptionRegistry {
  private readonly connections = new Set<SubscriberConnection>();
  /** Connections that were ended, whose clients may still be reading the error. */
  private readonly expired = new WeakSet<SubscriberConnection>();
  private readonly networks: NetworkLimit;
  private readonly timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS).unref();
  private isChecking = false;

  constructor(private readonly dependencies: Dependencies) {
    this.networks = new NetworkLimit(
      dependencies.config.maxSubscriptionConnectionsPerAddress,
      'Too many subscription connections from this address',
    );
    gauge(
      'shopfront_subscription_connections',
      'Open subscription connections: WebSockets and event streams.',
      () => this.connections.size,
    );
  }

  /**
   * Throws UNAVAILABLE if the server is full or draining, RATE_LIMITED if the network has too many
   * connections.
   */
  rejectIfFull(network: string): void {
    const { isDraining, config } = this.dependencies;
    const isFull = this.connections.size >= config.maxSubscriptionConnections;
    if (isDraining() || isFull) throw unavailableError();
    this.networks.check(network);
  }

  /** Adds a connection. Returns a function that removes it. Throws as `rejectIfFull`. */
  add(connection: SubscriberConnection): () => void {
    this.rejectIfFull(connection.network);
    const release = this.networks.add(connection.network);
    this.connections.add(connection);
    return () => {
      if (this.connections.delete(connection)) release();
    };
  }

  /** Ends all connections, and the checks. */
  close(): void {
    clearInterval(this.timer);
    for (const connection of this.connections) connection.endForShutdown();
  }

  private async check(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    // Without the database, no credentials can be checked. Requests log the failure.
    await this.endExpired().catch(() => undefined);
    this.isChecking = false;
  }

  private async endExpired(): Promise<void> {
    const { database, now, log } = this.dependencies;
    const callers = [...this.connections].flatMap(({ caller }) => caller ?? []);
    const statements = callers.length > 0 ? database()?.statements : undefined;
    if (!statements) return;
    const expiries = await findExpired({ statements, now }, callers);
    for (const connection of this.connections) {
      const { caller } = connection;
      const expiry = caller && expiries.get(caller);
      if (!expiry || this.expired.has(connection)) continue;
      this.expired.add(connection);
      log.info(
        { event: 'auth.expired', user: caller.username },
        'Credentials no longer valid, subscriptions ended',
      );
      connection.endExpired(expiry);
    }
  }
}
