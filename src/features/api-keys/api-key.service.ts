import { randomUUID } from 'node:crypto';
import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { changesOf, differences, note, notingEach } from '../audit/audit.log.ts';
import * as sessions from '../auth/sessions/session.service.ts';
import { requirePerson, requireScope, requireWriter } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import { readPagesOf, type Listing, type Page, type PageArgs } from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { hashKey, newKey, printOf } from '../../core/secret-key.ts';
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

/** How long a key lives that nobody gave an end. */
const DEFAULT_LIFE_MS = 90 * DAY_MS;
/** How many good keys a user may have. */
const MAX_KEYS = 50;
const TOO_MANY = `There are ${MAX_KEYS} API keys already: revoke one first`;

/** A new API key, with the key itself, which is shown once. */
export interface Made {
  apiKey: ApiKey;
  key: string;
}

/**
 * Makes an API key of the caller, with scopes out of those that the caller holds at this moment. Throws BAD_USER_INPUT, CONFLICT where there are 50,
 * NOT_AUTHENTICATED where the session has ended meanwhile, FORBIDDEN for other scopes and for a caller that is an API key itself.
 */
export async function create(ctx: Context, input: NewApiKey): Promise<Made> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const given = check(newApiKeyAt(ctx.now()), input);
  for (const scope of given.scopes) requireScope(ctx, scope);
  return open(ctx, { pk, username }, given);
}

/** Makes an API key for a user: for the operator. Throws BAD_USER_INPUT, also for scopes that the user does not hold, and CONFLICT. */
export async function createFor(ctx: Context, user: User, input: NewApiKey): Promise<Made> {
  const given = check(newApiKeyAt(ctx.now()), input);
  const lacking = given.scopes.filter((scope) => !user.scopes.includes(scope));
  if (lacking.length > 0) throw badInput('scopes', `${user.username} does not hold ${lacking.join(', ')}`);
  return open(ctx, user, given);
}

/** Ends one of the caller's own API keys by its global id, and returns what it was. Throws NOT_AUTHENTICATED, FORBIDDEN, and NOT_FOUND for any other id. */
export async function revoke(ctx: Context, id: string): Promise<ApiKey> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const kid = nodeKeyOf(ApiKey.name, id) ?? '';
  const [apiKey] = await end(ctx, pk, kid);
  // Another user's key is not told from one that never was; of two at once, one has ended it.
  if (!apiKey) throw new DomainError('NOT_FOUND', 'No such API key');
  ctx.log.info({ event: 'auth.api_key', outcome: 'success', user: username, change: 'revoked' }, 'an API key was revoked');
  return apiKey;
}

/** Ends a user's API key by its id, or all of them. Returns how many. */
export async function revokeOf(ctx: Context, userPk: number, kid?: string): Promise<number> {
  return (await end(ctx, userPk, kid)).length;
}

/** The good API keys of users as the caller may see them, latest first, in pages: the caller's own, none of others, and none for an API key. */
export function pageOf(ctx: Context, userPk: number, args: PageArgs): Promise<Page<ApiKey>> {
  return loader(ctx, `apiKeys.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, visible(ctx), args, { property: 'userPk', pks }),
  ).load(userPk);
}

/** Finds API keys for `node(id:)`: the caller's own. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(ApiKey | null)[]> {
  const kids = keys.filter((key) => isUuid(key));
  return inOrder(await selectEntities(ctx, ApiKey, sql`kid = any(${kids}::uuid[]) and ${mine(ctx)}`), 'kid', keys);
}

/** All good API keys of a user, latest first: for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<ApiKey[]> {
  return selectEntities(ctx, ApiKey, sql`user_pk = ${userPk} and ${good(ctx)} order by created_at desc, kid desc`);
}

/** Deletes what has expired. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from api_key where expires_at <= ${ctx.now()}`);
  return affected;
}

async function open(ctx: Context, { pk, username }: Pick<User, 'pk' | 'username'>, given: CheckedApiKey): Promise<Made> {
  const { name, scopes, expiresAt } = given;
  const now = ctx.now();
  const until = expiresAt ?? new Date(now.getTime() + DEFAULT_LIFE_MS);
  const key = KEY_PREFIX + newKey();
  const apiKey = await inTransaction(ctx, async (tx) => {
    await users.refuseMore(tx, pk, sql`api_key where ${good(tx)} and user_pk`, MAX_KEYS, TOO_MANY);
    // Whoever had it before may have set another password, which ends the session: no key is to come after that.
    if (!(await isSignedIn(tx))) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
    const made = Object.assign(new ApiKey(), {
      kid: randomUUID(),
      userPk: pk,
      name,
      keyHash: hashKey(key),
      scopes: [...new Set(scopes)],
      createdAt: now,
      expiresAt: until,
      lastUsedAt: null,
    });
    await tx.em.persist(made).flush();
    const facts = { owner: username, scopes: made.scopes.join(' '), expiresAt: until.toISOString() };
    await note(tx, 'api_key.created', { kind: AuditSubjectKind.API_KEY, key: made.kid, name }, differences({}, facts));
    return made;
  });
  ctx.log.info({ event: 'auth.api_key', outcome: 'success', user: username, change: 'made', key: printOf(key) }, 'an API key was made');
  return { apiKey, key };
}

// The session that the caller came by is there still; an operator comes by none, nor does a token of another issuer.
async function isSignedIn(ctx: Context): Promise<boolean> {
  const sid = ctx.caller?.sessionId;
  if (sid === undefined) return true;
  const session = await sessions.bySid(ctx, sid);
  return session !== undefined && sessions.isLive(ctx, session);
}

function visible(ctx: Context): Listing<ApiKey> {
  return {
    name: 'apiKeys',
    entity: ApiKey,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'kid', kind: 'uuid' },
    ],
    descending: true,
    where: mine(ctx),
  };
}

// A machine is told nothing of the other keys of its owner.
function mine(ctx: Context): Sql {
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return sql`api_key.user_pk = ${owner ?? null}::integer and ${good(ctx)}`;
}

function good(ctx: Context): Sql {
  return sql`api_key.expires_at > ${ctx.now()}`;
}

async function end(ctx: Context, userPk: number, kid?: string): Promise<ApiKey[]> {
  if (kid !== undefined && !isUuid(kid)) return [];
  const shape = shapeOf(ctx, ApiKey);
  const revoked = notingEach(ctx, 'api_key.revoked', {
    from: sql`from ended join "user" on "user".pk = ended.user_pk`,
    kind: AuditSubjectKind.API_KEY,
    key: sql`kid`,
    name: sql`name`,
    changes: changesOf('before', { owner: sql`username`, scopes: sql`array_to_string(ended.scopes, ' ')` }),
  });
  const which = kid === undefined ? sql`true` : sql`kid = ${kid}::uuid`;
  const rows = await writeRows(
    ctx,
    sql`
    with ended as (
      delete from api_key where user_pk = ${userPk} and ${which} and ${good(ctx)} returning ${shape.columns}
    ), noted as (${revoked})
    select ${shape.columns} from ended as api_key`,
  );
  return rows.map((row) => shape.entity(row));
}
