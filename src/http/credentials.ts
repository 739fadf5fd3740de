import type { IncomingMessage } from 'node:http';
import { callerByApiKey, isApiKey } from '../features/api-keys/api-key.service.ts';
import { callerBySessionKey, callerByToken } from '../features/auth/callers.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

/** A request, or another carrier of request headers. */
type HeaderSource = Pick<IncomingMessage, 'headers'>;

/** Returns whether the request has no header that carries credentials. */
export function isAnonymous({ headers }: HeaderSource): boolean {
  return CREDENTIAL_HEADERS.every((name) => headers[name.toLowerCase()] === undefined);
}

/**
 * Sets the caller that the credentials identify. Sets none without credentials. `Authorization`, if
 * present, decides alone: it holds an API key or an access token, and anything but a bearer token
 * counts as no credentials. Throws for invalid credentials.
 */
export async function findCaller(ctx: Context, req: HeaderSource): Promise<void> {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token !== undefined)
      ctx.caller = await (isApiKey(token) ? callerByApiKey : callerByToken)(ctx, token);
    return;
  }
  const keys = [req.headers['x-session-id'], req.headers['x-sessionid']].filter(
    (key) => typeof key === 'string',
  );
  const [key, other = key] = keys;
  if (key === undefined) return;
  if (key !== other) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  ctx.caller = await callerBySessionKey(ctx, key);
}
