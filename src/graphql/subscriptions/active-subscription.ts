import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { DomainError } from '../../core/errors.ts';
import { GivingUp } from '../../core/cancellation.ts';
import type { Seen } from '../../telemetry/request-record.ts';

/** What goes on for a client until somebody ends it: a subscription. To services, it is the request that they work for. */
export class Listening extends GivingUp {
  private why: DomainError | undefined;

  constructor(
    /** The request that the connection began with. */
    readonly req: IncomingMessage,
    readonly requestId: string = randomUUID(),
    /** What the observer is told of it. */
    readonly seen?: Seen,
  ) {
    super();
  }

  get connection(): object {
    return this.req.socket;
  }

  /** What the client is told of the end, where it is not the client's own doing. */
  get refusal(): DomainError | undefined {
    return this.why;
  }

  /** Ends it, with a word to the client or without. */
  end(refusal?: DomainError): void {
    if (this.isGivenUp) return;
    this.why = refusal;
    this.giveUp();
  }

  /** Nothing is waited for: it was set aside from the beginning. */
  setAside(): void {}
}
