import { randomUUID } from 'node:crypto';
import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { changesOf, diff, record, recordEach } from '../audit/audit.log.ts';
import * as sessions from '../auth/sessions/session.service.ts';
import { requirePerson, requireScope, requireWriter } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import {
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { hashKey, newSecretKey, fingerprint } from '../../core/secret-key.ts';
import { inOrder, selectEntities, shapeOf, writeRows } from '../../database/row-mapper.ts';
import { execute, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { isUuid } from '../../core/uuid.ts';
import { check } from '../../core/validation.ts';
import type { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { ApiKey } from './api-key.entity.ts';
import { newApiKeyAt, type CheckedApiKey, type NewApiKey } from './api-key.rules.ts';
import { KEY_PREFIX } from './api-key-authentication.service.ts';

/** Lifetime of a key without an expiry, in ms. */
const DEFAULT_LIFETIME_MS = 90 * DAY_MS;
/** Maximum number of valid keys per user. */
const MAX_KEYS = 50;
const TOO_MANY = `A user can have at most ${MAX_KEYS} API keys; revoke one first`;

/** A new API key, with the key itself, which is returned only once. */
export interface CreatedApiKey {
  apiKey: ApiKey;
  key: string;
}

/**
 * Creates an API key of the caller, with scopes out of those of the caller. Throws BAD_USER_INPUT,
 * CONFLICT if there are 50, NOT_AUTHENTICATED also if the session has ended meanwhile, FORBIDDEN
 * for other scopes and for callers with an API key.
 */
export async function create(ctx: Context, input: NewApiKey): Promise<CreatedApiKey> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const given = check(newApiKeyAt(ctx.now()), input);
  for (const scope of given.scopes) requireScope(ctx, scope);
  return issue(ctx, { pk, username }, given);
}

/**
 * Creates an API key for a user, for the operator. Throws BAD_USER_INPUT, also for scopes that the
 * user does not have, and CONFLICT.
 */
export async function createFor(
  ctx: Context,
  user: User,
  input: NewApiKey,
): Promise<CreatedApiKey> {
  const given = check(newApiKeyAt(ctx.now()), input);
  const missingScopes = given.scopes.filter((scope) => !user.scopes.includes(scope));
  if (missingScopes.length > 0)
    throw badInput('scopes', `User ${user.username} does not have ${missingScopes.join(', ')}`);
  return issue(ctx, user, given);
}

/**
 * Revokes one of the caller's API keys by its global id and returns it. Throws NOT_AUTHENTICATED,
 * FORBIDDEN, and NOT_FOUND for any other id.
 */
export async function revoke(ctx: Context, id: string): Promise<ApiKey> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const keyId = nodeKeyOf(ApiKey.name, id) ?? '';
  const [apiKey] = await deleteKeys(ctx, pk, keyId);
  // The same error for other users' keys, unknown keys, and keys revoked concurrently.
  if (!apiKey) throw new DomainError('NOT_FOUND', 'No such API key');
  ctx.log.info(
    { event: 'auth.api_key', outcome: 'success', user: username, change: 'revoked' },
    'API key revoked',
  );
  return apiKey;
}

/** Revokes an API key of a user by its id, or all of them. Returns their number. */
export async function revokeOf(ctx: Context, userPk: number, keyId?: string): Promise<number> {
  return (await deleteKeys(ctx, userPk, keyId)).length;
}

/**
 * Returns a page of the caller's valid API keys, latest first; empty for other users, and for
 * callers with an API key.
 */
export function pageOf(ctx: Context, userPk: number, args: PageArgs): Promise<Page<ApiKey>> {
  return loader(ctx, `apiKeys.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, listDefinition(ctx), args, { property: 'userPk', pks }),
  ).load(userPk);
}

/** Finds the caller's API keys for `node(id:)`. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(ApiKey | null)[]> {
  const keyIds = keys.filter((key) => isUuid(key));
  return inOrder(
    await selectEntities(
      ctx,
      ApiKey,
      sql`key_id = any(${keyIds}::uuid[]) and ${ownedByCaller(ctx)}`,
    ),
    'keyId',
    keys,
  );
}

/** Returns all valid API keys of a user, latest first, for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<ApiKey[]> {
  return selectEntities(
    ctx,
    ApiKey,
    sql`user_pk = ${userPk} and ${isValid(ctx)} order by created_at desc, key_id desc`,
  );
}

/** Deletes expired API keys. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from api_key where expires_at <= ${ctx.now()}`,
  );
  return affected;
}

async function issue(
  ctx: Context,
  { pk, username }: Pick<User, 'pk' | 'username'>,
  given: CheckedApiKey,
): Promise<CreatedApiKey> {
  const { name, scopes, expiresAt } = given;
  const now = ctx.now();
  const until = expiresAt ?? new Date(now.getTime() + DEFAULT_LIFETIME_MS);
  const key = KEY_PREFIX + newSecretKey();
  const apiKey = await inTransaction(ctx, async (tx) => {
    await users.enforceRowLimit(
      tx,
      pk,
      sql`api_key where ${isValid(tx)} and user_pk`,
      MAX_KEYS,
      TOO_MANY,
    );
    // Checked after the lock: a concurrent password change ends the session, and nobody who signed
    // in with the old password may create a key after that.
    if (!(await isSessionLive(tx))) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
    const created = Object.assign(new ApiKey(), {
      keyId: randomUUID(),
      userPk: pk,
      name,
      keyHash: hashKey(key),
      scopes: [...new Set(scopes)],
      createdAt: now,
      expiresAt: until,
      lastUsedAt: null,
    });
    await tx.em.persist(created).flush();
    const facts = {
      owner: username,
      scopes: created.scopes.join(' '),
      expiresAt: until.toISOString(),
    };
    await record(
      tx,
      'api_key.created',
      { kind: AuditSubjectKind.API_KEY, key: created.keyId, name },
      diff({}, facts),
    );
    return created;
  });
  ctx.log.info(
    {
      event: 'auth.api_key',
      outcome: 'success',
      user: username,
      change: 'made',
      key: fingerprint(key),
    },
    'API key created',
  );
  return { apiKey, key };
}

// Returns whether the caller's session is live, or the caller has none (operators, other issuers).
async function isSessionLive(ctx: Context): Promise<boolean> {
  const sid = ctx.caller?.sessionId;
  if (sid === undefined) return true;
  const session = await sessions.bySid(ctx, sid);
  return session !== undefined && sessions.isLive(ctx, session);
}

function listDefinition(ctx: Context): ListDefinition<ApiKey> {
  return {
    name: 'apiKeys',
    entity: ApiKey,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'keyId', kind: 'uuid' },
    ],
    descending: true,
    where: ownedByCaller(ctx),
  };
}

// An API key may not read the other keys of its user.
function ownedByCaller(ctx: Context): Sql {
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return sql`api_key.user_pk = ${owner ?? null}::bigint and ${isValid(ctx)}`;
}

function isValid(ctx: Context): Sql {
  return sql`api_key.expires_at > ${ctx.now()}`;
}

async function deleteKeys(ctx: Context, userPk: number, keyId?: string): Promise<ApiKey[]> {
  if (keyId !== undefined && !isUuid(keyId)) return [];
  const shape = shapeOf(ctx, ApiKey);
  const revoked = recordEach(ctx, 'api_key.revoked', {
    from: sql`from ended join "user" on "user".pk = ended.user_pk`,
    kind: AuditSubjectKind.API_KEY,
    key: sql`key_id`,
    name: sql`name`,
    changes: changesOf('before', {
      owner: sql`username`,
      scopes: sql`array_to_string(ended.scopes, ' ')`,
    }),
  });
  const filter = keyId === undefined ? sql`true` : sql`key_id = ${keyId}::uuid`;
  const rows = await writeRows(
    ctx,
    sql`
    with ended as (
      delete from api_key where user_pk = ${userPk} and ${filter} and ${isValid(ctx)} returning ${shape.columns}
    ), noted as (${revoked})
    select ${shape.columns} from ended as api_key`,
  );
  return rows.map((row) => shape.entity(row));
}
