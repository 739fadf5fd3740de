import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { DomainError } from '../../core/errors.ts';
import { Cancellation } from '../../core/cancellation.ts';
import type { RequestRecord } from '../../telemetry/request-record.ts';

/** A running subscription. Services use it as the request that they run for. */
export class ActiveSubscription extends Cancellation {
  private endReason: DomainError | undefined;

  constructor(
    /** The request that opened the connection. */
    readonly req: IncomingMessage,
    readonly requestId: string = randomUUID(),
    /** The request record for logs and metrics. */
    readonly record?: RequestRecord,
  ) {
    super();
  }

  get connection(): object {
    return this.req.socket;
  }

  /** The error for the client, if the client did not end the subscription. */
  get error(): DomainError | undefined {
    return this.endReason;
  }

  /** Ends the subscription, with or without an error for the client. */
  end(error?: DomainError): void {
    if (this.isCancelled) return;
    this.endReason = error;
    this.cancel();
  }

  /** Does nothing: a subscription is excluded from admission control from the start. */
  exclude(): void {}
}
