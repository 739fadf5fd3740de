import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../core/errors.ts';
import type { Operation, RequestRecord } from '../../telemetry/request-record.ts';

/** The operation in logs and metrics until the document is parsed. */
export const SUBSCRIPTION: Operation = { type: 'subscription', label: 'subscription' };

/** A running subscription. Services use it as the request that they run for. */
export class ActiveSubscription {
  private readonly controller = new AbortController();
  readonly startedAt = performance.now();
  readonly requestId: string;

  constructor(
    /** The request that opened the connection. */
    readonly req: IncomingMessage,
    /** The request record for logs and metrics: by default, of a subscription on a WebSocket. */
    readonly record: RequestRecord = {
      requestId: randomUUID(),
      method: 'GET',
      api: 'graphql',
      endpoint: 'GET /graphql',
      operation: SUBSCRIPTION,
      status: 101,
      bytes: 0,
      end: 'answered',
    },
  ) {
    this.requestId = record.requestId;
  }

  /** Aborted when the subscription ends. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get connection(): object {
    return this.req.socket;
  }

  /** The error for the client, if the client did not end the subscription. */
  get error(): DomainError | undefined {
    const reason: unknown = this.signal.reason;
    return reason instanceof DomainError ? reason : undefined;
  }

  /** Ends the subscription, with or without an error for the client. */
  end(error?: DomainError): void {
    this.controller.abort(error);
  }

  /** Does nothing: a subscription is excluded from admission control from the start. */
  exclude(): void {}
}
