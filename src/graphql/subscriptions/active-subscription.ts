import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../core/errors.ts';
import type { RequestRecord } from '../../telemetry/request-record.ts';

/** A running subscription. Services use it as the request that they run for. */
export class ActiveSubscription {
  private readonly controller = new AbortController();

  constructor(
    /** The request that opened the connection. */
    readonly req: IncomingMessage,
    readonly requestId: string = randomUUID(),
    /** The request record for logs and metrics. */
    readonly record?: RequestRecord,
  ) {}

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
