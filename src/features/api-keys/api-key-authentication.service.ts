import { rejectDisabled } from '../auth/caller.service.ts';
import type { Caller, Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { hashKey, fingerprint } from '../../core/secret-key.ts';
import { readRows, shapeOf } from '../../database/row-mapper.ts';
import { includesWriteScope } from '../../core/scopes.ts';
import { execute, sql } from '../../database/sql.ts';
import { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { ApiKey } from './api-key.entity.ts';

/** Prefix of every API key, and of no other credentials, for scanners that search for secrets. */
export const KEY_PREFIX = 'sk_';
/** Minimum time between two updates of the last use of a key, in ms. */
const LAST_USED_INTERVAL_MS = 60_000;
const KEY = /^sk_[\w-]{43}$/;

/** Returns whether the text has the format of an API key. */
export function isApiKey(text: string): boolean {
  return KEY.test(text);
}

/**
 * Returns the caller with this API key, who has the scopes that both the key and its user have.
 * Throws INVALID_TOKEN and INACTIVE_USER.
 */
export async function callerByApiKey(ctx: Context, key: string): Promise<Caller> {
  const row = await withUser(ctx, key);
  if (!row) throw rejected(ctx, key, 'no such key');
  const { user, apiKey } = row;
  rejectDisabled(ctx, user);
  if (apiKey.expiresAt <= ctx.now()) throw rejected(ctx, key, 'expired');
  await updateLastUsed(ctx, apiKey);
  const scopes = new Set(user.scopes.filter((scope) => apiKey.scopes.includes(scope)));
  return {
    pk: user.pk,
    username: user.username,
    apiKeyId: apiKey.keyId,
    expiresAt: apiKey.expiresAt,
    scopes,
    ...(!includesWriteScope(scopes) && { isReadOnly: true }),
  };
}

async function withUser(
  ctx: Context,
  key: string,
): Promise<{ user: User; apiKey: ApiKey } | undefined> {
  const user = shapeOf(ctx, User);
  const apiKey = shapeOf(ctx, ApiKey);
  const [row] = await readRows(
    ctx,
    sql`select ${user.columns}, ${apiKey.columns} from api_key join "user" on "user".pk = api_key.user_pk where api_key.key_hash = ${hashKey(key)}`,
    true,
  );
  if (!row) return undefined;
  const owner = user.entity(row);
  users.remember(ctx, owner);
  return { user: owner, apiKey: apiKey.entity(row, user.properties.length) };
}

// Updates the row at most once a minute, also with concurrent requests.
async function updateLastUsed(ctx: Context, { keyId, lastUsedAt }: ApiKey): Promise<void> {
  const now = ctx.now();
  const threshold = new Date(now.getTime() - LAST_USED_INTERVAL_MS);
  if (lastUsedAt && lastUsedAt > threshold) return;
  await execute(
    ctx.em,
    sql`update api_key set last_used_at = ${now} where key_id = ${keyId}::uuid and (last_used_at is null or last_used_at <= ${threshold})`,
  );
}

function rejected(ctx: Context, key: string, reason: string): DomainError {
  ctx.log.info(
    { event: 'auth.api_key', outcome: 'failure', user: null, reason, key: fingerprint(key) },
    'API key rejected',
  );
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}
