import { logFailure, type Caller, type Context } from './context.ts';
import { DomainError } from '../core/errors.ts';
import { SCOPES, type Scope } from '../core/scopes.ts';

/** Returns the authenticated caller. Throws NOT_AUTHENTICATED. */
export function requireCaller(ctx: Context): Caller {
  if (!ctx.caller) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  return ctx.caller;
}

/**
 * Returns the authenticated caller. Throws NOT_AUTHENTICATED, and FORBIDDEN for API keys, which
 * must not change their account.
 */
export function requirePerson(ctx: Context): Caller {
  const caller = requireCaller(ctx);
  if (caller.apiKeyId !== undefined) throw forbidden(ctx, 'Not allowed with an API key');
  return caller;
}

/**
 * Returns the authenticated caller, for changes of the caller's own data. Throws NOT_AUTHENTICATED,
 * and FORBIDDEN for credentials that were narrowed to read scopes.
 */
export function requireWriter(ctx: Context): Caller {
  const caller = requireCaller(ctx);
  if (caller.isReadOnly) throw forbidden(ctx, 'These credentials are read-only');
  return caller;
}

/** Returns whether the caller or, without credentials, ANONYMOUS_SCOPES has the scope. */
export function hasScope(ctx: Context, scope: Scope): boolean {
  return ctx.caller ? ctx.caller.scopes.has(scope) : ctx.config.anonymousScopes.includes(scope);
}

/** Returns the scopes of the request. */
export function usableScopes(ctx: Context): Scope[] {
  return SCOPES.filter((scope) => hasScope(ctx, scope));
}

/** Logs the attempt, and returns the FORBIDDEN error. */
export function forbidden(ctx: Context, message: string): DomainError {
  logFailure(ctx, { event: 'auth.forbidden', user: ctx.caller?.username ?? null }, message);
  return new DomainError('FORBIDDEN', message);
}

/** Throws if the scope is missing: NOT_AUTHENTICATED without credentials, FORBIDDEN with them. */
export function requireScope(ctx: Context, scope: Scope): void {
  if (hasScope(ctx, scope)) return;
  requireCaller(ctx);
  throw forbidden(ctx, `Missing scope: ${scope}`);
}
