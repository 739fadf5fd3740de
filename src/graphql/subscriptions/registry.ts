import { AsyncResource } from 'node:async_hooks';
import { findExpired } from '../../features/auth/sessions/credential-expiry.service.ts';
import type { Caller } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { gauge } from '../../core/metrics.ts';
import { unavailableError } from '../../http/http-error.ts';
import type { Dependencies } from '../../http/dependencies.ts';

/** Interval between checks of the connections' credentials, in milliseconds. */
const CHECK_INTERVAL_MS = 500;
/** Number of checks per ping: a ping every 12 s. */
const CHECKS_PER_PING = 24;
/** Seconds after which a rejected client should retry. */
const RETRY_S = 5;

/** A connection with subscriptions: a WebSocket or an event stream. */
export interface SubscriberConnection {
  readonly network: string;
  /** The authenticated caller, once known. */
  readonly caller: Caller | undefined;
  /** Ends the connection because the caller's credentials are no longer valid. */
  endExpired(refusal: DomainError): void;
  /** Ends the connection for a shutdown, so that the client reconnects to another process. */
  endForShutdown(): void;
  /** Called every 12 s, to disconnect a client that reads nothing. */
  ping?(): void;
}

/** A maximum per client network. */
export class NetworkLimit {
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly max: number,
    /** Message of the error above the maximum. */
    private readonly message: string,
  ) {}

  /** Throws RATE_LIMITED if this amount would exceed the network's maximum. */
  check(network: string, amount = 1): void {
    if ((this.counts.get(network) ?? 0) + amount > this.max)
      throw new DomainError('RATE_LIMITED', this.message, [], RETRY_S);
  }

  /** Adds the amount. Returns a function that subtracts it. Throws as `check`. */
  add(network: string, amount = 1): () => void {
    this.check(network, amount);
    this.counts.set(network, (this.counts.get(network) ?? 0) + amount);
    return () => {
      const remaining = (this.counts.get(network) ?? amount) - amount;
      if (remaining > 0) this.counts.set(network, remaining);
      else this.counts.delete(network);
    };
  }
}

/** Logs the disconnection of a slow subscriber. */
export function logSlowConsumer({ log }: Pick<Dependencies, 'log'>, network: string): void {
  log.info(
    { event: 'subscription.slow_consumer', network },
    'Subscription too slow, connection closed',
  );
}

/** The subscription connections of this process. Checks all their credentials by one statement. */
export class SubscriptionRegistry {
  private readonly connections = new Set<SubscriberConnection>();
  /** Connections that were ended, whose clients may still be reading the error. */
  private readonly expired = new WeakSet<SubscriberConnection>();
  private readonly networks: NetworkLimit;
  private timer: NodeJS.Timeout | undefined;
  private checks = 0;
  private isChecking = false;
  private isClosed = false;

  // Keeps the timer out of the async context of the first connection's request.
  private readonly startTimer = AsyncResource.bind(() =>
    setInterval(() => void this.check(), CHECK_INTERVAL_MS).unref(),
  );

  constructor(private readonly dependencies: Dependencies) {
    this.networks = new NetworkLimit(
      dependencies.config.maxSubscriptionConnectionsPerAddress,
      'Too many subscription connections from this address',
    );
    gauge(
      'shopfront_subscription_connections',
      'Open subscription connections: WebSockets and event streams.',
      () => this.count,
    );
  }

  /** Number of open connections. */
  get count(): number {
    return this.connections.size;
  }

  /**
   * Throws UNAVAILABLE if the server is full or draining, RATE_LIMITED if the network has too many
   * connections.
   */
  rejectIfFull(network: string): void {
    const { isDraining, config } = this.dependencies;
    if (this.isClosed || isDraining() || this.count >= config.maxSubscriptionConnections)
      throw unavailableError();
    this.networks.check(network);
  }

  /** Adds a connection. Returns a function that removes it. Throws as `rejectIfFull`. */
  add(connection: SubscriberConnection): () => void {
    this.rejectIfFull(connection.network);
    const release = this.networks.add(connection.network);
    this.connections.add(connection);
    this.timer ??= this.startTimer();
    return () => {
      if (!this.connections.delete(connection)) return;
      release();
      if (this.connections.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    };
  }

  /** Ends all connections and accepts no more. */
  close(): void {
    this.isClosed = true;
    for (const connection of this.connections) connection.endForShutdown();
  }

  private async check(): Promise<void> {
    if (++this.checks % CHECKS_PER_PING === 0)
      for (const connection of this.connections) connection.ping?.();
    if (this.isChecking) return;
    this.isChecking = true;
    try {
      await this.endExpired();
    } catch {
      // Without the database, no credentials can be checked. Requests log the failure.
    } finally {
      this.isChecking = false;
    }
  }

  private async endExpired(): Promise<void> {
    const { database, now, log } = this.dependencies;
    const authenticated = [...this.connections].flatMap((connection) =>
      connection.caller ? [{ connection, caller: connection.caller }] : [],
    );
    const statements = authenticated.length > 0 ? database()?.statements : undefined;
    if (!statements) return;
    const expiries = await findExpired(
      { statements, now },
      authenticated.map(({ caller }) => caller),
    );
    for (const { connection, caller } of authenticated) {
      const expiry = expiries.get(caller);
      if (!expiry || !this.connections.has(connection) || this.expired.has(connection)) continue;
      this.expired.add(connection);
      const reason = expiry.reason ?? (caller.apiKeyId === undefined ? 'TOKEN' : 'API_KEY');
      log.info(
        { event: 'auth.expired', user: caller.username, reason },
        'Credentials no longer valid, subscriptions ended',
      );
      connection.endExpired(expiry);
    }
  }
}
