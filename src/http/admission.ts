import type { RequestListener } from 'node:http';
import { counter } from '../core/metrics.ts';
import { inFlight, begin, beginAtOnce, type TicketListeners } from './in-flight.ts';
import { overloadResponder } from './overload-response.ts';
import type { Dependencies } from './dependencies.ts';

/** Time without a rejection after which an overload has ended, in ms. */
const OVERLOAD_END_MS = 5_000;

const rejections = counter(
  'shopfront_overload_refusals_total',
  'Requests rejected with 503 because of overload.',
);

/**
 * Starts requests in the order of their arrival. Rejects requests with 503, before any other work,
 * when there are MAX_REQUESTS_IN_FLIGHT or when requests have queued for too long
 * (request-queue.ts). A request whose body has not been received is also rejected when that many
 * requests wait for their bodies. Preflights and health checks start at once.
 */
export function admission(dependencies: Dependencies, inner: RequestListener): RequestListener {
  const { config, log } = dependencies;
  const respond = overloadResponder(dependencies);
  const healthPaths = new Set(['/livez', '/readyz'].map((path) => config.basePath + path));
  inFlight.max = config.maxRequestsInFlight;
  let overload: NodeJS.Timeout | undefined;

  const recordRejection = () => {
    if (overload) {
      overload.refresh();
    } else {
      const before = rejections.value;
      log.warn(
        { event: 'overload.begin', inFlight: inFlight.size },
        'Overload began; some requests are rejected with 503',
      );
      const endOverload = () => {
        overload = undefined;
        log.warn(
          { event: 'overload.end', refused: rejections.value - before },
          'Overload ended; requests are no longer rejected',
        );
      };
      overload = setTimeout(endOverload, OVERLOAD_END_MS).unref();
    }
    rejections.value++;
  };

  const listeners: TicketListeners = {
    start: inner,
    reject(req, res) {
      recordRejection();
      respond(req, res);
    },
  };
  return (req, res) => {
    if (req.method === 'OPTIONS' || healthPaths.has(req.url ?? ''))
      beginAtOnce(req, res, listeners);
    else if (inFlight.isFull()) listeners.reject(req, res);
    else begin(req, res, listeners);
  };
}
