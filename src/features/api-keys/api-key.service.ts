import { randomUUID } from 'node:crypto';
import { expressionBuilder } from 'kysely';
import { z } from 'zod';
import { LockMode } from '@mikro-orm/postgresql';
import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { diff, record, recordAll, type Subject } from '../audit/audit.log.ts';
import { rejectDisabled } from '../auth/callers.ts';
import * as sessions from '../auth/sessions/session.service.ts';
import { requirePerson, requireScope, requireWriter } from '../../request/access.ts';
import {
  inTransaction,
  type Caller,
  type Context,
  logFailure,
  logSuccess,
} from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import {
  findInList,
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { hashKey, newSecretKey, fingerprint } from '../../core/secret-key.ts';
import { deleteUntil, type Columns } from '../../database/kysely.ts';
import { includesWriteScope, SCOPES } from '../../core/scopes.ts';
import { instant } from '../../api/scalars.ts';
import { lineOf } from '../../core/text.ts';
import { DAY_MS } from '../../core/time.ts';
import { isUuid, check, reject } from '../../core/validation.ts';
import type { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { ApiKey } from './api-key.entity.ts';

/** Lifetime of a key without an expiry, in ms. */
const DEFAULT_LIFETIME_MS = 90 * DAY_MS;
/** Maximum number of valid keys per user. */
const MAX_KEYS = 50;
const TOO_MANY = `A user can have at most ${MAX_KEYS} API keys; revoke one first`;

/** Prefix of every API key, and of no other credentials, for scanners that search for secrets. */
const KEY_PREFIX = 'sk_';
/** Minimum time between two updates of the last use of a key, in ms. */
const LAST_USED_INTERVAL_MS = 60_000;
const KEY = /^sk_[\w-]{43}$/;

/** Maximum length of a name, in characters. */
const MAX_NAME = 100;
/** Maximum lifetime, in days. */
export const MAX_DAYS = 366;

// Returns the schema of a new API key that is created at this time.
function newApiKeyAt(now: Date) {
  const expiry = instant.superRefine((until, ctx) => {
    if (until <= now) reject(ctx, 'value_error', 'must be in the future');
    if (until.getTime() - now.getTime() > MAX_DAYS * DAY_MS)
      reject(ctx, 'value_error', `must be within ${MAX_DAYS} days`);
  });
  return z.object({
    name: lineOf(MAX_NAME),
    scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)),
    expiresAt: expiry.nullish(),
  });
}

type NewApiKey = z.input<ReturnType<typeof newApiKeyAt>>;

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
  const { pk, username, scopes: own } = requirePerson(ctx);
  requireWriter(ctx);
  const { scopes } = check(newApiKeyAt(ctx.now()), input);
  for (const scope of scopes) requireScope(ctx, scope);
  return createFor(ctx, { pk, username, scopes: [...own] }, input);
}

/**
 * Creates an API key for a user, for the operator. Throws BAD_USER_INPUT, also for scopes that the
 * user does not have, and CONFLICT.
 */
export async function createFor(
  ctx: Context,
  { pk, username, scopes: own }: Pick<User, 'pk' | 'username' | 'scopes'>,
  input: NewApiKey,
): Promise<CreatedApiKey> {
  const now = ctx.now();
  const { name, scopes, expiresAt } = check(newApiKeyAt(now), input);
  const missing = scopes.filter((scope) => !own.includes(scope));
  if (missing.length > 0)
    throw badInput('scopes', `User ${username} does not have ${missing.join(', ')}`);
  const until = expiresAt ?? new Date(now.getTime() + DEFAULT_LIFETIME_MS);
  const key = KEY_PREFIX + newSecretKey();
  const apiKey = await inTransaction(ctx, async (tx) => {
    const valid = { userPk: pk, expiresAt: { $gt: now } };
    await users.enforceRowLimit(tx, pk, ApiKey, valid, MAX_KEYS, TOO_MANY);
    // Checked after the lock: a concurrent password change ends the session, and nobody who signed
    // in with the old password may create a key after that.
    const sid = tx.caller?.sessionId;
    const session = sid === undefined ? undefined : await sessions.bySid(tx, sid);
    if (session === null || (session && !sessions.isLive(tx, session)))
      throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
    const created = tx.em.create(ApiKey, {
      keyId: randomUUID(),
      userPk: pk,
      name,
      keyHash: hashKey(key),
      scopes: [...new Set(scopes)],
      createdAt: now,
      expiresAt: until,
      lastUsedAt: null,
    });
    const changes = diff({}, { owner: username, scopes: created.scopes.join(' ') });
    await record(tx, 'api_key.created', subjectOf(created), changes);
    return created;
  });
  logSuccess(ctx, { event: 'auth.api_key', user: username, change: 'made', key: fingerprint(key) });
  return { apiKey, key };
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
  logSuccess(ctx, { event: 'auth.api_key', user: username, change: 'revoked' });
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
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(ApiKey | null)[]> {
  return findInList(ctx, listDefinition(ctx), keys);
}

/** Returns all valid API keys of a user, latest first, for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<ApiKey[]> {
  return ctx.em.find(
    ApiKey,
    { userPk, expiresAt: { $gt: ctx.now() } },
    { orderBy: { createdAt: 'desc', keyId: 'desc' }, disableIdentityMap: true },
  );
}

/** Deletes expired API keys. Returns their number. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'api_key', 'expires_at', ctx.now());
}

function listDefinition(ctx: Context): ListDefinition<ApiKey> {
  const eb = expressionBuilder<{ api_key: Columns<ApiKey> }, 'api_key'>();
  // An API key may not read the other keys of its user.
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return {
    name: 'apiKeys',
    entity: ApiKey,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'keyId', kind: 'uuid' },
    ],
    descending: true,
    where: eb('user_pk', '=', owner ?? null).and('expires_at', '>', ctx.now()),
  };
}

async function deleteKeys(ctx: Context, userPk: number, keyId?: string): Promise<ApiKey[]> {
  if (keyId !== undefined && !isUuid(keyId)) return [];
  return inTransaction(ctx, async (tx) => {
    const { username: owner } = await users.byPk(tx, userPk);
    const revoked = await tx.em.find(
      ApiKey,
      { userPk, expiresAt: { $gt: tx.now() }, ...(keyId !== undefined && { keyId }) },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    tx.em.remove(revoked);
    const entries = revoked.map((apiKey) => ({
      subject: subjectOf(apiKey),
      changes: diff({ owner, scopes: apiKey.scopes.join(' ') }, {}),
    }));
    await recordAll(tx, 'api_key.revoked', entries);
    return revoked;
  });
}

function subjectOf({ keyId, name }: ApiKey): Subject {
  return { kind: AuditSubjectKind.API_KEY, key: keyId, name };
}

/** Returns whether the text has the format of an API key. */
export function isApiKey(text: string): boolean {
  return KEY.test(text);
}

/**
 * Returns the caller with this API key, who has the scopes that both the key and its user have.
 * Throws INVALID_TOKEN and INACTIVE_USER.
 */
export async function callerByApiKey(ctx: Context, key: string): Promise<Caller> {
  const now = ctx.now();
  const valid = { keyHash: hashKey(key), expiresAt: { $gt: now } };
  const apiKey = await ctx.em.findOne(ApiKey, valid, { disableIdentityMap: true });
  if (!apiKey) {
    logFailure(ctx, { event: 'auth.api_key', key: fingerprint(key) });
    throw new DomainError('INVALID_TOKEN', 'Could not validate credentials');
  }
  const user = await users.byPk(ctx, apiKey.userPk);
  rejectDisabled(ctx, user);
  const { keyId, lastUsedAt } = apiKey;
  // At most once a minute, also with concurrent requests.
  if (now.getTime() - Number(lastUsedAt) >= LAST_USED_INTERVAL_MS)
    await ctx.em.nativeUpdate(ApiKey, { keyId, lastUsedAt }, { lastUsedAt: now });
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
