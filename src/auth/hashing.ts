import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';

/** How many hashes may wait for a thread before others are refused. */
const MAX_WAITING = 200;
/** How much the threads step back behind those that answer requests: of 19, as much as leaves them what is idle. */
const NICE = 10;
const IDLE_MS = 60_000;

let pool: Piscina | undefined;

/** Whether the password is the one of this hash. Throws UNAVAILABLE where too many wait already. */
export function compare(ctx: Context, password: string, hash: string): Promise<boolean> {
  return run(ctx, 'compare', { password, hash });
}

/** bcrypt's text form of the password. Throws UNAVAILABLE where too many wait already. */
export function make(ctx: Context, password: string, cost: number): Promise<string> {
  return run(ctx, 'make', { password, cost });
}

// Hashing is meant to cost much. Its threads take what nobody else wants, so that a storm of logins slows logins.
async function run<T>({ config, log }: Context, name: string, task: object): Promise<T> {
  pool ??= new Piscina({
    filename: new URL('./hash-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: config.hashThreads ?? availableParallelism(),
    maxQueue: MAX_WAITING,
    idleTimeout: IDLE_MS,
    niceIncrement: NICE,
  });
  if (pool.queueSize >= MAX_WAITING) {
    log.warn({ event: 'auth.hash_queue', waiting: pool.queueSize }, 'too many passwords wait to be hashed');
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
  }
  return (await pool.run(task, { name })) as T;
}
