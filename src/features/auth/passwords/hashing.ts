import { Piscina } from 'piscina';
import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { counter, gauges } from '../../../core/metrics.ts';
import { hashing, type Hashing } from '../../../core/tracing-channels.ts';
import type { Check } from './hash-worker.ts';

/** How much the threads step back behind those that answer requests: of 19, as much as leaves them what is idle. */
const NICE = 10;
const IDLE_MS = 60_000;

type Configured = Pick<Context, 'config'>;

let pool: Piscina | undefined;
/** How many are at work that hash, or wait for it. */
let turns = 0;
/** HASH_THREADS of whoever came last: a process has one. */
let threads = 0;

const refusals = counter(
  'shopfront_hash_refusals_total',
  'Logins and changes of passwords refused with 503, as too many waited for a thread that hashes.',
);
gauges('shopfront_hash_queue', 'Logins and changes of passwords that are at work, and those that wait for a thread.', 'state', () => ({
  running: Math.min(turns, threads),
  waiting: Math.max(turns - threads, 0),
}));

/**
 * Runs work that hashes, one hash after another. Throws UNAVAILABLE where HASH_THREADS are busy and HASH_QUEUE wait already: before
 * anything else is done, so that what is refused costs nothing, and tells nothing.
 */
export async function inTurn<T>({ config, log, request }: Context, work: () => Promise<T>): Promise<T> {
  threads = config.hashThreads;
  if (turns >= config.hashThreads + config.hashQueue) {
    refusals.value++;
    log.warn({ event: 'auth.hash_queue', outcome: 'failure', waiting: config.hashQueue }, 'too many passwords wait to be hashed');
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
  }
  turns++;
  request?.setAside();
  try {
    return await work();
  } finally {
    turns--;
  }
}

/** Whether the password is the one of this hash, at the price of the configured cost whatever comes of it. */
export function check(ctx: Configured, password: string, hash: string | undefined): Promise<boolean> {
  return run(ctx, 'check', { password, hash, cost: ctx.config.bcryptCost } satisfies Check);
}

/** bcrypt's text form of the password. */
export function make(ctx: Configured, password: string, cost: number): Promise<string> {
  return run(ctx, 'make', { password, cost });
}

// Hashing is meant to cost much. Its threads take what nobody else wants, so that a storm of logins slows logins.
async function run<T>({ config }: Configured, kind: Hashing['kind'], task: object): Promise<T> {
  const threadPool = (pool ??= new Piscina({
    filename: new URL('./hash-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: config.hashThreads,
    idleTimeout: IDLE_MS,
    niceIncrement: NICE,
  }));
  return hashing.tracePromise(async () => (await threadPool.run(task, { name: kind })) as T, { kind });
}
