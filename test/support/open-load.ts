import { Worker } from 'node:worker_threads';

/** One kind of request in a load. */
export interface LoadPart {
  name: string;
  /** Percentage of the requests. */
  share: number;
  /** Complete HTTP requests, sent in order. */
  requests: readonly string[];
}

/** A load, bounded in rate, time and connections. */
export interface LoadPlan {
  port: number;
  parts: readonly LoadPart[];
  /**
   * Requests per second, sent regardless of earlier responses. Without it, every connection sends
   * after each response.
   */
  rate?: number;
  seconds: number;
  /** Maximum number of connections. The time of a request includes the wait for a free one. */
  connections: number;
  /** Opens all connections before the first request, like a proxy. */
  opened?: true;
  /**
   * The server stops listening. The kernel then resets connections that it has not accepted, on which
   * the client has sent a request.
   */
  stopsListening?: true;
}

/** Response times of one status, in ms, from the scheduled time of the request. */
export interface Answers {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** The result of a load. */
export interface LoadResult {
  /** Duration in seconds. */
  seconds: number;
  sent: number;
  /** By status. */
  answers: Readonly<Record<number, Answers>>;
  /** Successes, by the name of the part. */
  byPart: Readonly<Record<string, Answers>>;
  /** Requests on an open connection that closed before the complete response. */
  lost: number;
  /** Requests for which no connection could be opened. */
  unconnected: number;
  /** Requests without a response 15 s after the end. */
  unanswered: number;
  /** Responses with `Connection: close`. */
  closing: number;
  /** Per second: successes, and responses with 503. */
  bySecond: readonly { ok: number; rejected: number }[];
}

/** A running load. */
export interface RunningLoad {
  /** Resolves at the first response. */
  begun: Promise<void>;
  /** Resolves at its end. */
  done: Promise<LoadResult>;
  /** Stops sending, and waits for pending responses. */
  stop(): void;
}

/** Placeholder in a request for a barcode that is new each time. */
export const NEW_BARCODE = '<new-barcode>';

/** Starts a load in a worker thread, so that the test itself does not delay it. */
export function startLoad(plan: LoadPlan): RunningLoad {
  const worker = new Worker(new URL('./open-load.worker.js', import.meta.url), {
    workerData: plan,
    execArgv: [],
  });
  const begun = Promise.withResolvers<void>();
  const done = new Promise<LoadResult>((resolve, fail) => {
    worker.on('message', (message: LoadResult | 'begun') =>
      message === 'begun' ? begun.resolve() : resolve(message),
    );
    worker.once('error', fail);
  });
  void done.then(() => worker.terminate()).catch(() => undefined);
  return { begun: begun.promise, done, stop: () => worker.postMessage('stop', []) };
}

/** Runs a load to its end. */
export function load(plan: LoadPlan): Promise<LoadResult> {
  return startLoad(plan).done;
}

/** Returns a complete HTTP request; a body is JSON. */
export function wire(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): string {
  const all = {
    Host: '127.0.0.1',
    ...headers,
    ...(body !== undefined && {
      'Content-Type': 'application/json',
      ...headers,
      'Content-Length': String(Buffer.byteLength(body)),
    }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}

/** Formats the median and the 99th percentile. */
export function timesOf({ p50, p99 }: Answers = { count: 0, p50: 0, p99: 0, max: 0 }): string {
  return `${p50.toFixed(1)} and ${p99.toFixed(1)} ms`;
}

/** Returns the number of responses with a status in this range. */
export function countOf({ answers }: LoadResult, from: number, to = from): number {
  return Object.entries(answers).reduce(
    (sum, [status, { count }]) =>
      Number(status) >= from && Number(status) <= to ? sum + count : sum,
    0,
  );
}
