import pLimit, { type LimitFunction } from 'p-limit';
import { Piscina } from 'piscina';
import { MAX_BCRYPT_COST } from '../../../core/config.ts';
import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { counter, gauges } from '../../../core/metrics.ts';
import { hashingChannel, type Hashing } from '../../../core/tracing-channels.ts';
import { MAX_PASSWORD_BYTES } from '../../users/user.rules.ts';
import type * as worker from './hash-worker.ts';

/** Nice increment of the hashing threads (maximum 19): they yield to the event loop's thread. */
const NICE = 10;
/** Time after which an idle thread ends, in ms. */
const IDLE_MS = 60_000;
/** Minimum cost that bcrypt supports. */
const MIN_COST = 4;

type Worker = typeof worker;
/** The parts of a context that hashing needs. Only a request has a log. */
type Hasher = Pick<Context, 'config' | 'request'> & { log?: Context['log'] };

let pool: { threads: Piscina; limit: LimitFunction } | undefined;
/** Number of tasks that hash or wait for a thread. */
let tasks = 0;

const rejections = counter(
  'shopfront_password_hash_refusals_total',
  'Logins and password changes rejected with 503 because the hashing queue was full.',
);
gauges(
  'shopfront_password_hash_queue',
  'Hashes that are running or waiting for a thread.',
  'state',
  () => {
    const waiting = pool?.limit.pendingCount ?? 0;
    return { running: tasks - waiting, waiting };
  },
);

/** Returns the bcrypt hash of a password that has passed `newPassword`, at the configured cost. */
export function hashPassword(ctx: Hasher, password: string): Promise<string> {
  return runTask(ctx, 'make', { password });
}

/** Measures a hash of the configured cost. Returns its time in ms. */
export async function measureHash(ctx: Hasher): Promise<number> {
  // The first hash also starts the thread.
  await hashPassword(ctx, '');
  const start = performance.now();
  await hashPassword(ctx, '');
  return Math.round(performance.now() - start);
}

/**
 * Returns whether the password matches the hash, which is null for a user without a password, and
 * undefined without a user. A wrong password always takes the same time, so that the time does not
 * reveal whether the user exists.
 */
export async function verifyPassword(
  ctx: Context,
  password: string,
  hash: string | null | undefined,
): Promise<boolean> {
  const isHash = typeof hash === 'string' && costOf(hash) !== undefined;
  if (hash !== undefined && !isHash)
    ctx.log.warn({ event: 'auth.hash_invalid' }, 'User without a valid password hash');
  // Such passwords cannot have been set.
  const isPassword = password.isWellFormed() && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES;
  // PHP and htpasswd write 2y for bcrypt's 2b.
  const checked = isHash && isPassword ? hash.replace(/^\$2y/, '$2b') : undefined;
  return runTask(ctx, 'check', { password, hash: checked });
}

/** Returns whether the cost of the hash is lower than the configured one. */
export function isOutdated(ctx: Context, hash: string): boolean {
  return (costOf(hash) ?? 0) < ctx.config.bcryptCost;
}

function costOf(hash: string): number | undefined {
  const cost = Number(/^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1]);
  return cost >= MIN_COST && cost <= MAX_BCRYPT_COST ? cost : undefined;
}

// Runs a task of hash-worker.ts at the configured cost. Hashing is expensive by design. Its threads
// have a low priority, so that a flood of logins slows down only logins. Throws UNAVAILABLE if all
// threads are busy and the queue is full, whatever the password.
async function runTask<Kind extends Hashing['kind']>(
  { config, log, request }: Hasher,
  kind: Kind,
  given: Omit<Parameters<Worker[Kind]>[0], 'cost'>,
): Promise<ReturnType<Worker[Kind]>> {
  const { threads, limit } = (pool ??= openPool(config.passwordHashThreads));
  if (tasks >= config.passwordHashThreads + config.passwordHashQueue) {
    rejections.value++;
    log?.warn({ event: 'auth.hash_queue', outcome: 'failure' }, 'Password hashing queue is full');
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
  }
  const task = { ...given, cost: config.bcryptCost };
  const hash = () =>
    limit(async () => {
      // Only while the task waits: Piscina ends the thread of a running one.
      request?.signal.throwIfAborted();
      return (await threads.run(task, { name: kind })) as ReturnType<Worker[Kind]>;
    });
  request?.exclude();
  tasks++;
  try {
    return await hashingChannel.tracePromise(hash, { kind });
  } finally {
    tasks--;
  }
}

function openPool(maxThreads: number) {
  const threads = new Piscina({
    filename: new URL('./hash-worker.js', import.meta.url).href,
    minThreads: 0,
    maxThreads,
    idleTimeout: IDLE_MS,
    niceIncrement: NICE,
  });
  return { threads, limit: pLimit(maxThreads) };
}
