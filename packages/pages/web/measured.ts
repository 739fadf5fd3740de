import { clientHeaders } from './client.ts';
import { withToken } from './session.ts';
import { home } from './settings.ts';

/** A request of the home page. */
export interface PageRequest {
  method: string;
  /** Path under the base address. */
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** Whether it is sent with the token of the signed-in user, if any. */
  asUser: boolean;
}

/** A response with what the browser measured. */
export interface Measured {
  status: number;
  /** Seconds of `Retry-After`, if the response has it. */
  retryAfter: string | null;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  json: unknown;
  /** Length of the body in bytes. */
  bytes: number;
  /** Length of the body in bytes as transferred, which may be compressed. */
  transferred: number;
  /** Time from the request to the end of the response. */
  milliseconds: number;
}

/** Maximum time that the browser takes to report the timing of a complete response. */
const TIMING_MS = 2_000;

/** Sends a request. Throws if the server cannot be reached, or if the session has ended. */
export async function measure({ asUser, path, ...init }: PageRequest): Promise<Measured> {
  const address = home + path;
  // The browser keeps a limited number of entries.
  performance.clearResourceTimings();
  const started = performance.now();
  const send = (token?: string): Promise<Response> =>
    fetch(address, {
      ...init,
      cache: 'no-store',
      headers: {
        ...clientHeaders,
        ...init.headers,
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
    });
  const response = await (asUser ? withToken(send) : send()).catch((error: unknown) => {
    throw error instanceof TypeError ? new Error('The server cannot be reached.') : error;
  });
  const text = await response.text();
  const ended = performance.now();
  const entry = await timingOf(address, response.status);
  const length = new Blob([text]).size;
  return {
    status: response.status,
    retryAfter: response.headers.get('Retry-After'),
    text,
    json: parsed(text),
    bytes: entry?.decodedBodySize ?? length,
    transferred: entry?.encodedBodySize ?? length,
    milliseconds: entry ? entry.responseEnd - entry.requestStart : ended - started,
  };
}

// The entry of a complete response may be late. A request that was repeated with a new token has two.
async function timingOf(
  address: string,
  status: number,
): Promise<PerformanceResourceTiming | undefined> {
  const entries = (): PerformanceResourceTiming[] =>
    performance.getEntriesByName(address, 'resource') as PerformanceResourceTiming[];
  const found = (): PerformanceResourceTiming | undefined =>
    entries().findLast(({ responseStatus }) => responseStatus === status);
  if (!found()) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const observer = new PerformanceObserver(() => found() && resolve());
    observer.observe({ type: 'resource' });
    setTimeout(resolve, TIMING_MS);
    await promise;
    observer.disconnect();
  }
  return found();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
