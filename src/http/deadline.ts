import type { RequestHandler, Response } from 'express';
import type { Config } from '../core/config.ts';
import type { DomainError } from '../core/errors.ts';
import { timeoutError, unavailableError } from './http-error.ts';

/** Ends requests that take too long, or that wait for an unavailable database. */
export class Deadline {
  // V8 may keep a deleted element for long: here an empty object instead of a response.
  private readonly pending = new Set<{ res: Response | undefined }>();

  constructor(private readonly config: Pick<Config, 'requestTimeoutMs'>) {}

  /**
   * Rejects the request with 503 and aborts its signal if its response has not begun after
   * REQUEST_TIMEOUT_MS.
   */
  readonly middleware: RequestHandler = (_req, res, next) => {
    const timer = setTimeout(() => reject(res, timeoutError()), this.config.requestTimeoutMs);
    const entry: { res: Response | undefined } = { res };
    this.pending.add(entry);
    res.locals.onClose(() => {
      clearTimeout(timer);
      this.pending.delete(entry);
      entry.res = undefined;
    });
    next();
  };

  /** Rejects all requests without a response, because the database is unavailable. */
  rejectPending(): void {
    for (const { res } of this.pending) if (res) reject(res, unavailableError());
  }
}

function reject({ headersSent, locals }: Response, error: DomainError): void {
  if (headersSent) return;
  locals.abort(error);
  locals.sendError(error);
}
