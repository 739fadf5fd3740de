import pLimit, { type LimitFunction } from 'p-limit';
import { Piscina } from 'piscina';
import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { counter, gauges } from '../../../core/metrics.ts';
import { hashingChannel, type Hashing } from '../../../core/tracing-channels.ts';
import type { Check } from './hash-worker.ts';

/** Nice increment of the hashing threads (maximum 19): they yield to the event loop's thread. */
const NICE = 10;
/** Time after which an idle thread ends, in ms. */
const IDLE_MS = 60_000;

type Configured = Pick<Context, 'config' | 'request'>;

let pool: { threads: Piscina; limit: LimitFunction } | undefined;
/** Number of tasks that hash or wait for a thread. */
let tasks = 0;
/** Number of hash threads as of the last task; it is the same for the whole process. */
let threads = 0;

const rejections = counter(
  'shopfront_password_hash_refusals_total',
  'Logins and password changes rejected with 503 because the hashing queue was full.',
);
gauges(
  'shopfront_password_hash_queue',
  'Logins and password changes that are running or waiting for a hashing thread.',
  'state',
  () => ({
    running: Math.min(tasks, threads),
    waiting: Math.max(tasks - threads, 0),
  }),
);

/**
 * Runs work that hashes passwords sequentially. Throws UNAVAILABLE if all threads are busy and the
 * queue is full. It throws before any other work, so that a rejection costs nothing and reveals
 * nothing.
 */
export async function withHashSlot<T>(
  { config, log, request }: Context,
  work: () => Promise<T>,
): Promise<T> {
  threads = config.passwordHashThreads;
  if (tasks >= config.passwordHashThreads + config.passwordHashQueue) {
    rejections.value++;
    log.warn(
      { event: 'auth.hash_queue', outcome: 'failure', waiting: config.passwordHashQueue },
      'Password hashing queue is full',
    );
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
  }
  tasks++;
  request?.exclude();
  try {
    return await work();
  } finally {
    tasks--;
  }
}

/** Returns whether the password matches. A wrong one takes at least the configured cost. */
export function check(
  ctx: Configured,
  password: string,
  hash: string | undefined,
): Promise<boolean> {
  return run(ctx, 'check', { password, hash, cost: ctx.config.bcryptCost } satisfies Check);
}

/** Returns the bcrypt hash of the password. */
export function make(ctx: Configured, password: string, cost: number): Promise<string> {
  return run(ctx, 'make', { password, cost });
}

// Hashing is expensive by design. Its threads have a low priority, so that a flood of logins slows
// down only logins.
async function run<T>(
  { config, request }: Configured,
  kind: Hashing['kind'],
  task: object,
): Promise<T> {
  const { threads: threadPool, limit } = (pool ??= openPool(config.passwordHashThreads));
  const hash = () =>
    limit(async () => {
      // The client left while the task waited.
      request?.signal.throwIfAborted();
      return (await threadPool.run(task, { name: kind })) as T;
    });
  return hashingChannel.tracePromise(hash, { kind });
}

function openPool(maxThreads: number) {
  return {
    threads: new Piscina({
      filename: new URL('./hash-worker.js', import.meta.url).href,
      minThreads: 0,
      maxThreads,
      idleTimeout: IDLE_MS,
      niceIncrement: NICE,
    }),
    limit: pLimit(maxThreads),
  };
}
