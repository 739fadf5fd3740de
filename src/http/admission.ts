import type { RequestListener } from 'node:http';
import { counter } from '../core/metrics.ts';
import { inFlight, mayQueue, takeOff, takeOffAtOnce, type Listeners } from './in-flight.ts';
import { refuser } from './overload-response.ts';
import type { Services } from './dependencies.ts';

/** Time in ms without a rejection after which an overload is over. */
const OVER_MS = 5_000;

const refusals = counter(
  'shopfront_overload_refusals_total',
  'Requests refused with 503 because there were more than could be answered in good time.',
);

/**
 * Starts requests in the order of their arrival, and rejects them with 503 before anything else is done for them when there are
 * MAX_REQUESTS_IN_FLIGHT, or when requests have waited for too long for a while (request-queue.ts). A request whose body has not been
 * received is also rejected when that many wait for their bodies. Preflights and health checks are
 * started at once. A connection with too many pending responses is closed.
 */
export function admission(services: Services, inner: RequestListener): RequestListener {
  const { config, log } = services;
  const refuse = refuser(services);
  const alwaysIn = new Set(['/livez', '/readyz'].map((path) => config.basePath + path));
  inFlight.max = config.maxRequestsInFlight;
  let overload: NodeJS.Timeout | undefined;

  const note = () => {
    if (overload) {
      overload.refresh();
    } else {
      const before = refusals.value;
      log.warn({ event: 'overload.begin', inFlight: inFlight.size }, 'there are more requests than can be answered: some are refused');
      const end = () => {
        overload = undefined;
        log.warn({ event: 'overload.end', refused: refusals.value - before }, 'requests are no longer refused');
      };
      overload = setTimeout(end, OVER_MS).unref();
    }
    refusals.value++;
  };

  const listeners: Listeners = {
    start: inner,
    reject(req, res) {
      note();
      refuse(req, res);
    },
  };
  return (req, res) => {
    // Only a pipelined request has a response without a socket.
    if (!res.socket && !mayQueue(res)) {
      req.socket.destroy();
      return;
    }
    if (req.method === 'OPTIONS' || alwaysIn.has(req.url ?? '')) takeOffAtOnce(req, res, listeners);
    else if (inFlight.isFull()) listeners.reject(req, res);
    else takeOff(req, res, listeners);
  };
}
