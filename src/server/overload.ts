import type { RequestListener } from 'node:http';
import { counter } from '../kit/metrics.ts';
import { inFlight, isFull, mayQueue, takeOff } from './in-flight.ts';
import { refuser } from './refusal.ts';
import type { Services } from './services.ts';

/** So many at once are always taken beside those that wait for the database, however late the event loop is. */
const LEAST_WHEN_LATE = 8;
/** So many at once are always taken, however long the database makes them wait: what needs no database is among them. */
const LEAST_WHEN_CROWDED = 128;
/** From so many on, it is looked at how late the event loop is. Below, nothing can be amiss. */
const WATCHED_FROM = 32;
/** For so long, in ms, it has to be late or crowded before any is refused for that: a stall and what has piled up behind it pass by themselves. */
const PATIENCE_MS = 250;
const LOOK_EVERY_MS = 10;
/** The event loop is this late, in ms, where it does as much as it can and nothing waits for long. */
const LAG_MS = 10;
/** So many statements may wait for each connection of the pool. */
const WAITING = 4;
/** More are let in by this many each look, while nothing waits for long; fewer by these parts, at most, where the loop is late or the pool crowded. */
const RAISE = 4;
const CUT_WHEN_LATE = 0.5;
const CUT_WHEN_CROWDED = 0.9;
/** Refusals are over when there was none for so long. */
const OVER_MS = 5_000;

const refusals = counter(
  'shopfront_overload_refusals_total',
  'Requests refused with 503 because there were more than could be answered in good time.',
);

/**
 * Lets as many requests in at once as can be answered in good time, at most MAX_REQUESTS_IN_FLIGHT; any more are refused with 503 before
 * anything else is done for them. How many that is, is found out all the time: more as long as the event loop keeps up, and fewer when it is
 * late, or many wait for the database (additive increase, multiplicative decrease). Preflights and the health endpoints are always let in. A connection
 * on which too many answers wait is broken off.
 */
export function admission(services: Services, inner: RequestListener): RequestListener {
  const { config, log } = services;
  const waiting = () => services.database()?.waiting() ?? 0;
  const refuse = refuser(services);
  const most = config.maxRequestsInFlight;
  const alwaysIn = new Set(['/livez', '/readyz'].map((path) => config.basePath + path));
  inFlight.most = most;
  let watch: NodeJS.Timeout | undefined;
  let [lookedAt, lag] = [0, 0];
  let calmAt = 0;
  let episode: { before: number; last: number } | undefined;

  const startWatch = () => {
    calmAt = lookedAt = performance.now();
    lag = 0;
    watch = setInterval(look, LOOK_EVERY_MS).unref();
  };
  const cut = (factor: number, least: number) => {
    inFlight.most = Math.min(inFlight.most, Math.max(least, Math.min(inFlight.most, inFlight.now) * factor));
  };
  const look = () => {
    const now = performance.now();
    const late = now - lookedAt - LOOK_EVERY_MS;
    lookedAt = now;
    // One long turn may be a collection of garbage; two in a row are too much work.
    const worst = Math.min(late, lag);
    lag = late;
    const isLate = worst > LAG_MS;
    const isCrowded = waiting() > WAITING * config.poolMax;
    if (!isLate && !isCrowded) {
      calmAt = now;
      if (inFlight.now > inFlight.most / 2) inFlight.most = Math.min(most, inFlight.most + RAISE);
    } else if (episode || now - calmAt > PATIENCE_MS) {
      if (isLate) cut(Math.max(CUT_WHEN_LATE, LAG_MS / worst), LEAST_WHEN_LATE + config.poolMax + waiting());
      else cut(CUT_WHEN_CROWDED, LEAST_WHEN_CROWDED);
    }
    if (episode && now - episode.last > OVER_MS) {
      log.warn({ event: 'overload.end', refused: refusals.value - episode.before }, 'requests are no longer refused');
      episode = undefined;
    }
    if (inFlight.now >= WATCHED_FROM || episode) return;
    clearInterval(watch);
    watch = undefined;
    inFlight.most = most;
  };

  return (req, res) => {
    // Only who asks again before the answer has one without a socket.
    if (!res.socket && !mayQueue(res)) {
      req.socket.destroy();
      return;
    }
    if (isFull() && req.method !== 'OPTIONS' && !alwaysIn.has(req.url ?? '')) {
      refusals.value++;
      if (!watch) startWatch();
      if (!episode) {
        episode = { before: refusals.value - 1, last: 0 };
        log.warn({ event: 'overload.begin', inFlight: inFlight.now }, 'there are more requests than can be answered: some are refused');
      }
      episode.last = lookedAt;
      refuse(req, res);
      return;
    }
    takeOff(res);
    if (!watch && inFlight.now >= WATCHED_FROM) startWatch();
    inner(req, res);
  };
}
