import { changed, type Context } from './context.ts';
import { includesWriting } from '../core/scopes.ts';

/**
 * The context to read public tables with: by the request's replica where it has one, unless the caller may write. Who may write reads
 * from the primary and so finds all that was written, whichever instance is asked: nothing has to be remembered about anyone.
 */
export function reading(ctx: Context): Context {
  const { replica, statements } = ctx;
  if (!replica || !statements || includesWriting(ctx.caller?.scopes ?? ctx.config.anonymousScopes)) return ctx;
  return changed(ctx, { statements: replica });
}
