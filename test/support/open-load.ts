import { Worker } from 'node:worker_threads';

/** A kind of request of a load. */
export interface LoadPart {
  name: string;
  /** How many of a hundred requests are of this kind. */
  share: number;
  /** Whole requests as they go over the wire, sent in turn. */
  requests: readonly string[];
}

/** A load, bounded in rate, time and connections. */
export interface LoadPlan {
  port: number;
  parts: readonly LoadPart[];
  /** Requests a second, which arrive whether those before are answered or not. Without it, every connection sends when it has its answer. */
  rate?: number;
  seconds: number;
  /** Connections at most. A request that finds none free waits, and its time counts. */
  connections: number;
  /** They are all open before the first request, as a proxy in front has them. */
  opened?: true;
}

/** Answers of one status. Times are in ms, from the moment at which the request was to be sent. */
export interface Answers {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** What a load came to. */
export interface Loaded {
  /** For how long it ran, in seconds. */
  seconds: number;
  sent: number;
  /** By status. */
  answers: Readonly<Record<number, Answers>>;
  /** Successes, by the name of the part. */
  byPart: Readonly<Record<string, Answers>>;
  /** Requests that were sent, or were to be sent on an open connection, and whose connection ended without a whole answer. */
  lost: number;
  /** Requests for which no connection could be opened. */
  unconnected: number;
  /** Requests that had no answer within 15 s after the end. */
  unanswered: number;
  /** Answers that said `Connection: close`. */
  closing: number;
  /** What was answered in each second: successes, refusals with 503, and the slowest success in ms. */
  bySecond: readonly { ok: number; refused: number; slowest: number }[];
}

/** A load that is under way. */
export interface RunningLoad {
  /** Resolves when the first answer has come. */
  begun: Promise<void>;
  /** Resolves at its end. */
  done: Promise<Loaded>;
  /** Sends nothing more, and waits for what is on its way. */
  stop(): void;
}

/** Stands in a request where a barcode that is new each time is to go. */
export const NEW_BARCODE = '<new-barcode>';

/** Starts a load from a thread of its own, so that nothing of the test's own work delays it. */
export function startLoad(plan: LoadPlan): RunningLoad {
  const worker = new Worker(new URL('./open-load.worker.js', import.meta.url), { workerData: plan, execArgv: [] });
  const begun = Promise.withResolvers<void>();
  const done = new Promise<Loaded>((resolve, fail) => {
    worker.on('message', (told: Loaded | 'begun') => (told === 'begun' ? begun.resolve() : resolve(told)));
    worker.once('error', fail);
  });
  void done.then(() => worker.terminate()).catch(() => undefined);
  return { begun: begun.promise, done, stop: () => worker.postMessage('stop', []) };
}

/** Runs a load to its end. */
export function load(plan: LoadPlan): Promise<Loaded> {
  return startLoad(plan).done;
}

/** A request as it goes over the wire; a body is JSON. */
export function wire(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: string): string {
  const all = {
    Host: '127.0.0.1',
    ...headers,
    ...(body !== undefined && { 'Content-Type': 'application/json', ...headers, 'Content-Length': String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}

/** The median and the 99th percentile of these answers, as text. */
export function timesOf({ p50, p99 }: Answers = { count: 0, p50: 0, p99: 0, max: 0 }): string {
  return `${p50.toFixed(1)} and ${p99.toFixed(1)} ms`;
}

/** How many answers had a status in this range. */
export function countOf({ answers }: Loaded, from: number, to = from): number {
  return Object.entries(answers).reduce(
    (sum, [status, { count }]) => (Number(status) >= from && Number(status) <= to ? sum + count : sum),
    0,
  );
}
