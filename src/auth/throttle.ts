import { createHash } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import { execute, sql } from '../kit/sql.ts';

// Failures of logins are counted, by account and network and by network alone, in the database, where all instances see
// them. A right password from elsewhere always works: nobody can lock somebody else out by failing in that one's name.

/** How long a failure counts, in seconds. */
const WINDOW_SECONDS = 10 * 60;
const MAX_RETRY_AFTER = 60;
const TABLE = 'login_failure';

interface Limiters {
  byAccount: RateLimiterPostgres;
  byNetwork: RateLimiterPostgres;
}

/** Throws RATE_LIMITED after too many failures of this account from this network, or of any from there. The same for names that nobody has. */
export async function refuseTooMany(ctx: Context, username: string): Promise<void> {
  const { byAccount, byNetwork } = limitersOf(ctx);
  const found = await Promise.all([byAccount.get(accountKey(ctx, username)), byNetwork.get(networkKey(ctx))]);
  const limits = [byAccount.points, byNetwork.points];
  const spent = found.filter((state, index): state is RateLimiterRes => state !== null && state.consumedPoints >= (limits[index] ?? 0));
  if (spent.length === 0) return;
  ctx.log.warn({ event: 'auth.throttle', network: networkKey(ctx) }, 'too many logins failed');
  const wait = Math.ceil(Math.max(...spent.map(({ msBeforeNext }) => msBeforeNext)) / 1000);
  throw new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], Math.min(Math.max(wait, 1), MAX_RETRY_AFTER));
}

/** Counts a login that has failed. */
export async function noteFailure(ctx: Context, username: string): Promise<void> {
  const { byAccount, byNetwork } = limitersOf(ctx);
  await Promise.all([byAccount.penalty(accountKey(ctx, username)), byNetwork.penalty(networkKey(ctx))]);
}

/** Forgets the failures of this account from this network, now that its password is known there. */
export async function forgive(ctx: Context, username: string): Promise<void> {
  await limitersOf(ctx).byAccount.delete(accountKey(ctx, username));
}

/** Deletes what no longer counts. Returns how much. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from login_failure where expire <= ${Date.now()}`);
  return affected;
}

const known = new WeakMap<object, Limiters>();

// One pair for each pool, whoever asks.
function limitersOf({ em, config }: Context): Limiters {
  const connection = em.getConnection();
  const found = known.get(connection);
  if (found) return found;
  const limiter = (keyPrefix: string, points: number) =>
    new RateLimiterPostgres({
      storeClient: unnamed(em),
      storeType: 'client',
      tableName: TABLE,
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix,
      points,
      duration: WINDOW_SECONDS,
    });
  const made = {
    byAccount: limiter('account', config.loginFailuresPerAccount),
    byNetwork: limiter('network', config.loginFailuresPerAddress),
  };
  known.set(connection, made);
  return made;
}

// The library names its statements, which connections to the embedded database would take from each other.
function unnamed(em: EntityManager) {
  const own = em.fork();
  return {
    async query({ text, values }: { text: string; values: unknown[] }) {
      const { rows, affected } = await execute(own, { text, values });
      return { rows, rowCount: affected || rows.length };
    },
  };
}

function accountKey(ctx: Context, username: string): string {
  return createHash('sha256')
    .update(`${networkKey(ctx)} ${username}`)
    .digest('base64url');
}

function networkKey({ network = 'unknown' }: Context): string {
  return network;
}
