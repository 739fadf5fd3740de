import type { Socket } from 'node:net';
import type { DomainError } from '../core/errors.ts';
import { sendError, type ErrorFormat } from './responses.ts';
import type { Exchange } from './exchange.ts';
import { timeoutError, unavailableError } from './http-error.ts';
import type { Dependencies } from './dependencies.ts';

/** Number of checks per timeout. A request times out at most one check too late. */
const CHECKS_PER_TIMEOUT = 20;

interface Pending {
  exchange: Exchange;
  due: number;
  end(error: DomainError): void;
}

/**
 * Pending requests by timeout, oldest first. One timer per timeout checks all of them, because few
 * requests time out.
 */
const pendingByTimeout = new Map<number, Set<Pending>>();

/**
 * Runs the handler of a request. Sends errors in the given format, also if the response has not
 * begun after REQUEST_TIMEOUT_MS: then the request's database work is cancelled.
 */
export async function withTimeout(
  { config: { requestTimeoutMs }, log }: Dependencies,
  exchange: Exchange,
  errorFormat: ErrorFormat,
  handler: () => Promise<void>,
): Promise<void> {
  const pending = pendingFor(requestTimeoutMs);
  const entry: Pending = {
    exchange,
    due: performance.now() + requestTimeoutMs,
    end: (error) => {
      exchange.cancel();
      if (error.code === 'TIMEOUT') {
        log.warn(
          {
            event: 'request.timeout',
            requestId: exchange.requestId,
            endpoint: errorFormat.endpoint,
          },
          'Request timed out',
        );
      }
      sendError(exchange, error, log, errorFormat);
    },
  };
  pending.add(entry);
  try {
    await handler();
  } catch (error) {
    sendError(exchange, error, log, errorFormat);
  } finally {
    pending.delete(entry);
  }
}

/**
 * Rejects all requests without a response, because the database is unavailable. Returns their
 * number.
 */
export function rejectPending(): number {
  const waiting = [...pendingByTimeout.values()]
    .flatMap((pending) => [...pending])
    .filter(({ exchange }) => !exchange.res.headersSent && isBodyRead(exchange));
  for (const entry of waiting) entry.end(unavailableError());
  return waiting.length;
}

/** Cancels the requests of a closed connection. */
export function cancelFor(socket: Socket): void {
  for (const pending of pendingByTimeout.values())
    for (const { exchange } of pending) if (exchange.req.socket === socket) exchange.cancel();
}

function pendingFor(timeoutMs: number): Set<Pending> {
  const existing = pendingByTimeout.get(timeoutMs);
  if (existing) return existing;
  const pending = new Set<Pending>();
  pendingByTimeout.set(timeoutMs, pending);
  setInterval(() => endOverdue(pending, timeoutMs), timeoutMs / CHECKS_PER_TIMEOUT).unref();
  return pending;
}

function endOverdue(pending: Set<Pending>, timeoutMs: number): void {
  const now = performance.now();
  for (const entry of pending) {
    if (entry.due > now) return;
    pending.delete(entry);
    if (entry.exchange.res.headersSent) continue;
    // The server limits the time for sending a body (http-server.ts).
    if (isBodyRead(entry.exchange)) entry.end(timeoutError());
    else pending.add(Object.assign(entry, { due: now + timeoutMs }));
  }
}

function isBodyRead({ req }: Exchange): boolean {
  return !req.readableFlowing || req.readableEnded;
}
