import { requireCaller } from '../../../request/access.ts';
import type { Caller, Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { globalId } from '../../../api/node.ts';
import { readRows, type Reader } from '../../../database/row-mapper.ts';
import { sql } from '../../../database/sql.ts';
import { SessionEndReason, type SessionEnd } from './session-end.ts';
import { Session } from './session.entity.ts';

/** Why credentials that were good are good no longer. */
export class Lapse extends DomainError {
  constructor(
    /** Why their session has ended, where it has. */
    readonly reason?: SessionEndReason,
  ) {
    const isDisabled = reason === SessionEndReason.DISABLED;
    super(isDisabled ? 'INACTIVE_USER' : 'NOT_AUTHENTICATED', isDisabled ? 'Inactive user' : 'Not authenticated');
  }
}

/** Those of the callers whose credentials have lapsed since they were looked at, in one statement for all. */
export async function lapsesOf(ctx: Reader & Pick<Context, 'now'>, callers: readonly Caller[]): Promise<Map<Caller, Lapse>> {
  const now = ctx.now();
  const lapses = new Map<Caller, Lapse>();
  for (const caller of callers) if (caller.until && caller.until <= now) lapses.set(caller, new Lapse());
  const users = callers.map(({ pk }) => pk);
  const sids = callers.map(({ sessionId = null }) => sessionId);
  const kids = callers.map(({ apiKeyId = null }) => apiKeyId);
  const rows = await readRows(
    ctx,
    sql`
    select number, coalesce("user".disabled, false), session.ended_at is null and session.expires_at <= ${now}
    from unnest(${users}::integer[], ${sids}::uuid[], ${kids}::uuid[]) with ordinality as given (user_pk, sid, kid, number)
    left join "user" on "user".pk = user_pk
    left join session on session.sid = given.sid
    left join api_key on api_key.kid = given.kid
    where "user".pk is null or "user".disabled
      or given.sid is not null and (session.sid is null or session.ended_at is not null or session.expires_at <= ${now})
      or given.kid is not null and api_key.kid is null`,
  );
  for (const [number, isDisabled, hasExpired] of rows) {
    const caller = callers[Number(number) - 1];
    if (caller) lapses.set(caller, new Lapse(reasonOf(caller, isDisabled === 't', hasExpired === 't')));
  }
  return lapses;
}

/** The end of the caller's own session, once, when it comes. Throws NOT_AUTHENTICATED where the credentials have no session. */
export function awaitOwnEnd(ctx: Context): AsyncGenerator<SessionEnd, void> {
  const { sessionId } = requireCaller(ctx);
  if (sessionId === undefined) throw new DomainError('NOT_AUTHENTICATED', 'These credentials have no session');
  return ownEnd(ctx, sessionId);
}

async function* ownEnd(ctx: Context, sessionId: string): AsyncGenerator<SessionEnd, void> {
  const { request } = ctx;
  await new Promise<void>((done) => request?.onGiveUp(done));
  const refusal = request?.refusal;
  if (refusal instanceof Lapse && refusal.reason)
    yield { sessionId: globalId(Session.name, sessionId), reason: refusal.reason, at: ctx.now() };
}

function reasonOf({ apiKeyId }: Caller, isDisabled: boolean, hasExpired: boolean): SessionEndReason | undefined {
  if (isDisabled) return SessionEndReason.DISABLED;
  if (apiKeyId !== undefined) return undefined;
  return hasExpired ? SessionEndReason.EXPIRED : SessionEndReason.ENDED;
}
