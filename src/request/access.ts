import type { Caller, Context } from './context.ts';
import { DomainError } from '../core/errors.ts';
import { SCOPES, type Scope } from '../core/scopes.ts';

/** The signed-in caller, or NOT_AUTHENTICATED. */
export function requireCaller(ctx: Context): Caller {
  if (!ctx.caller) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  return ctx.caller;
}

/** The signed-in caller, who is no machine: an API key changes nothing of its account. Throws NOT_AUTHENTICATED, and FORBIDDEN for an API key. */
export function requirePerson(ctx: Context): Caller {
  const caller = requireCaller(ctx);
  if (caller.apiKeyId !== undefined) throw forbidden(ctx, 'This is not for API keys');
  return caller;
}

/** The signed-in caller, for a change of what is the caller's own. Throws NOT_AUTHENTICATED, and FORBIDDEN for credentials that were narrowed to reading. */
export function requireWriter(ctx: Context): Caller {
  const caller = requireCaller(ctx);
  if (caller.isReadOnly) throw forbidden(ctx, 'These credentials have no scope to change anything');
  return caller;
}

/** Whether the caller holds the scope; without credentials, whether ANONYMOUS_SCOPES names it. */
export function holds(ctx: Context, scope: Scope): boolean {
  return ctx.caller ? ctx.caller.scopes.has(scope) : ctx.config.anonymousScopes.includes(scope);
}

/** The scopes that this request may use. */
export function usableScopes(ctx: Context): Scope[] {
  return SCOPES.filter((scope) => holds(ctx, scope));
}

/** The refusal of what the caller may not do. */
export function forbidden(ctx: Context, message: string): DomainError {
  ctx.log.info({ event: 'auth.forbidden', outcome: 'failure', user: ctx.caller?.username ?? null }, message);
  return new DomainError('FORBIDDEN', message);
}

/** Refuses a caller who lacks the scope: NOT_AUTHENTICATED without credentials, FORBIDDEN with them. */
export function requireScope(ctx: Context, scope: Scope): void {
  if (holds(ctx, scope)) return;
  requireCaller(ctx);
  throw forbidden(ctx, `This needs the scope ${scope}`);
}
