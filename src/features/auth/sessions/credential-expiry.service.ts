import { requireCaller } from '../../../request/access.ts';
import type { Caller, Context } from '../../../request/context.ts';
import { onAbort } from '../../../core/abort.ts';
import { DomainError } from '../../../core/errors.ts';
import { globalId } from '../../../api/node.ts';
import { readRows, type Reader } from '../../../database/row-mapper.ts';
import { sql } from '../../../database/sql.ts';
import { SessionEndReason, type SessionEnd } from './session-end.ts';
import { Session } from './session.entity.ts';

/** Why credentials that were valid no longer are. */
export class CredentialExpiry extends DomainError {
  constructor(
    /** Why the session of the credentials ended, if it did. */
    readonly reason?: SessionEndReason,
  ) {
    const isDisabled = reason === SessionEndReason.DISABLED;
    super(
      isDisabled ? 'INACTIVE_USER' : 'NOT_AUTHENTICATED',
      isDisabled ? 'Inactive user' : 'Not authenticated',
    );
  }
}

/** Returns the callers whose credentials are no longer valid. Checks all in one statement. */
export async function findExpired(
  ctx: Reader & Pick<Context, 'now'>,
  callers: readonly Caller[],
): Promise<Map<Caller, CredentialExpiry>> {
  const now = ctx.now();
  const expired = new Map<Caller, CredentialExpiry>();
  for (const caller of callers)
    if (caller.expiresAt && caller.expiresAt <= now) expired.set(caller, new CredentialExpiry());
  const users = callers.map(({ pk }) => pk);
  const sids = callers.map(({ sessionId = null }) => sessionId);
  const keyIds = callers.map(({ apiKeyId = null }) => apiKeyId);
  const rows = await readRows(
    ctx,
    sql`
    select number, coalesce("user".disabled, false), session.ended_at is null and session.expires_at <= ${now}
    from unnest(${users}::bigint[], ${sids}::uuid[], ${keyIds}::uuid[]) with ordinality as given (user_pk, sid, key_id, number)
    left join "user" on "user".pk = user_pk
    left join session on session.sid = given.sid
    left join api_key on api_key.key_id = given.key_id
    where "user".pk is null or "user".disabled
      or given.sid is not null and (session.sid is null or session.ended_at is not null or session.expires_at <= ${now})
      or given.key_id is not null and api_key.key_id is null`,
  );
  for (const [number, isDisabled, hasExpired] of rows) {
    const caller = callers[Number(number) - 1];
    if (caller)
      expired.set(
        caller,
        new CredentialExpiry(reasonOf(caller, isDisabled === 't', hasExpired === 't')),
      );
  }
  return expired;
}

/** Yields the end of the caller's session once. Throws NOT_AUTHENTICATED without a session. */
export function onSessionEnded(ctx: Context): AsyncGenerator<SessionEnd, void> {
  const { sessionId } = requireCaller(ctx);
  if (sessionId === undefined)
    throw new DomainError('NOT_AUTHENTICATED', 'These credentials have no session');
  return waitForEnd(ctx, sessionId);
}

async function* waitForEnd(ctx: Context, sessionId: string): AsyncGenerator<SessionEnd, void> {
  const { signal } = ctx.request ?? {};
  await new Promise<void>((done) => onAbort(signal, done));
  const refusal: unknown = signal?.reason;
  if (refusal instanceof CredentialExpiry && refusal.reason)
    yield { sessionId: globalId(Session.name, sessionId), reason: refusal.reason, at: ctx.now() };
}

function reasonOf(
  { apiKeyId }: Caller,
  isDisabled: boolean,
  hasExpired: boolean,
): SessionEndReason | undefined {
  if (isDisabled) return SessionEndReason.DISABLED;
  if (apiKeyId !== undefined) return undefined;
  return hasExpired ? SessionEndReason.EXPIRED : SessionEndReason.ENDED;
}
