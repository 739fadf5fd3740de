import { refuseDisabled } from '../auth/caller.service.ts';
import type { Caller, Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { hashKey, printOf } from '../../core/secret-key.ts';
import { readRows, shapeOf } from '../../database/row-mapper.ts';
import { includesWriting } from '../../core/scopes.ts';
import { execute, sql } from '../../database/sql.ts';
import { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { ApiKey } from './api-key.entity.ts';

/** What every API key begins with, so that whoever looks through code and logs for secrets finds it. No other credentials begin so. */
export const KEY_PREFIX = 'sk_';
/** A key in use is written down this often, in ms, not at each request. */
const NOTE_EVERY_MS = 60_000;
const KEY = /^sk_[\w-]{43}$/;

/** Whether the text has the form of an API key. */
export function isApiKey(text: string): boolean {
  return KEY.test(text);
}

/**
 * The machine that has this key: it may do what its owner may at this moment, as far as the key goes. Throws INVALID_TOKEN, whatever is wrong with
 * the key, and INACTIVE_USER.
 */
export async function callerByApiKey(ctx: Context, key: string): Promise<Caller> {
  const found = await withOwner(ctx, key);
  if (!found) throw refused(ctx, key, 'no such key');
  const { user, apiKey } = found;
  refuseDisabled(ctx, user);
  if (apiKey.expiresAt <= ctx.now()) throw refused(ctx, key, 'expired');
  await note(ctx, apiKey);
  const scopes = new Set(user.scopes.filter((scope) => apiKey.scopes.includes(scope)));
  return {
    pk: user.pk,
    username: user.username,
    apiKeyId: apiKey.kid,
    until: apiKey.expiresAt,
    scopes,
    ...(!includesWriting(scopes) && { isReadOnly: true }),
  };
}

async function withOwner(ctx: Context, key: string): Promise<{ user: User; apiKey: ApiKey } | undefined> {
  const user = shapeOf(ctx, User);
  const apiKey = shapeOf(ctx, ApiKey);
  const [row] = await readRows(
    ctx,
    sql`select ${user.columns}, ${apiKey.columns} from api_key join "user" on "user".pk = api_key.user_pk where api_key.key_hash = ${hashKey(key)}`,
    true,
  );
  if (!row) return undefined;
  const found = user.entity(row);
  users.remember(ctx, found);
  return { user: found, apiKey: apiKey.entity(row, user.properties.length) };
}

// Once for all requests of a minute, also where several come at once.
async function note(ctx: Context, { kid, lastUsedAt }: ApiKey): Promise<void> {
  const now = ctx.now();
  const before = new Date(now.getTime() - NOTE_EVERY_MS);
  if (lastUsedAt && lastUsedAt > before) return;
  await execute(
    ctx.em,
    sql`update api_key set last_used_at = ${now} where kid = ${kid}::uuid and (last_used_at is null or last_used_at <= ${before})`,
  );
}

function refused(ctx: Context, key: string, reason: string): DomainError {
  ctx.log.info({ event: 'auth.api_key', outcome: 'failure', user: null, reason, key: printOf(key) }, 'an API key was refused');
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}
