import { withContext, type Context } from './context.ts';
import { includesWriteScope } from '../core/scopes.ts';

/**
 * Returns the context for reading public tables: on the request's replica, if any. Callers with a
 * write scope read from the primary, so they see their own writes on every instance without
 * per-caller state.
 */
export function onReplica(ctx: Context): Context {
  const { replica, statements } = ctx;
  if (
    !replica ||
    !statements ||
    includesWriteScope(ctx.caller?.scopes ?? ctx.config.anonymousScopes)
  )
    return ctx;
  return withContext(ctx, { statements: replica });
}
