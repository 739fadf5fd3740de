import type { Socket } from 'node:net';
import type { DomainError } from '../core/errors.ts';
import { answerError, type Wording } from './responses.ts';
import type { Exchange } from './exchange.ts';
import { tooLate, unavailable } from './http-error.ts';
import type { Services } from './dependencies.ts';

/** How exactly the deadline is kept: at most so much of it later. */
const TICKS = 20;

interface Pending {
  exchange: Exchange;
  due: number;
  end(refusal: DomainError): void;
}

/** The requests that are not answered yet, those that came first first: one timer looks after all of them, for few are ever late. */
const pending = new Map<number, Set<Pending>>();

/**
 * Runs what answers a request. What it throws is answered in the row's words, and so is taking longer than
 * REQUEST_DEADLINE_MS to begin the answer: then what the database still does for it is cancelled.
 */
export async function answerInTime(
  { config: { requestDeadlineMs }, log }: Services,
  exchange: Exchange,
  wording: Wording,
  work: () => Promise<void>,
): Promise<void> {
  const own = watchedFor(requestDeadlineMs);
  const entry: Pending = {
    exchange,
    due: performance.now() + requestDeadlineMs,
    end: (refusal) => {
      exchange.giveUp();
      if (refusal.code === 'TIMEOUT') {
        log.warn({ event: 'request.timeout', requestId: exchange.requestId, row: wording.row }, 'a request took too long');
      }
      answerError(exchange, refusal, log, wording);
    },
  };
  own.add(entry);
  try {
    await work();
  } catch (error) {
    answerError(exchange, error, log, wording);
  } finally {
    own.delete(entry);
  }
}

/** Refuses all requests that wait for an answer, as the database has stopped answering. Returns how many. */
export function refuseWaiting(): number {
  const waiting = [...pending.values()].flatMap((own) => [...own]).filter(({ exchange }) => !exchange.res.headersSent && isRead(exchange));
  for (const entry of waiting) entry.end(unavailable());
  return waiting.length;
}

/** Stops what is being done for requests of a client that has gone. */
export function giveUpFor(socket: Socket): void {
  for (const own of pending.values()) for (const { exchange } of own) if (exchange.req.socket === socket) exchange.giveUp();
}

function watchedFor(deadline: number): Set<Pending> {
  const before = pending.get(deadline);
  if (before) return before;
  const own = new Set<Pending>();
  pending.set(deadline, own);
  setInterval(() => endLate(own, deadline), deadline / TICKS).unref();
  return own;
}

function endLate(own: Set<Pending>, deadline: number): void {
  const now = performance.now();
  for (const entry of own) {
    if (entry.due > now) return;
    own.delete(entry);
    if (entry.exchange.res.headersSent) continue;
    // How long a client may take to send its body is the server's to say (http-server.ts).
    if (isRead(entry.exchange)) entry.end(tooLate());
    else own.add(Object.assign(entry, { due: now + deadline }));
  }
}

function isRead({ req }: Exchange): boolean {
  return !req.readableFlowing || req.readableEnded;
}
