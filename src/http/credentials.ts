import type { IncomingMessage } from 'node:http';
import { callerByApiKey, isApiKey } from '../features/api-keys/api-key-authentication.service.ts';
import { callerBySessionKey, callerByToken } from '../features/auth/caller.service.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import type { Exchange } from './exchange.ts';

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

/** A request, or what else carries what its headers would. */
type Bearer = Pick<IncomingMessage, 'headers'>;

/** Whether the request carries anything that could name its caller. */
export function isAnonymous({ headers }: Bearer): boolean {
  return headers.authorization === undefined && headers['x-session-id'] === undefined && headers['x-sessionid'] === undefined;
}

/** As `findCaller`, of a request, whose observers are told who it is. */
export async function identify(ctx: Context, { req, seen }: Exchange): Promise<void> {
  await findCaller(ctx, req);
  if (ctx.caller) seen.user = ctx.caller.username;
}

/**
 * Makes who the credentials name the caller; nobody, where there are none. Where `Authorization` is present it alone
 * decides: an API key or an access token, and anything that is no bearer token counts as none. Throws what is wrong with credentials that are there.
 */
export async function findCaller(ctx: Context, req: Bearer): Promise<void> {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token !== undefined) ctx.caller = await (isApiKey(token) ? callerByApiKey : callerByToken)(ctx, token);
    return;
  }
  const keys = [req.headers['x-session-id'], req.headers['x-sessionid']].filter((key) => typeof key === 'string');
  const [key, other = key] = keys;
  if (key === undefined) return;
  if (key !== other) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  ctx.caller = await callerBySessionKey(ctx, key);
}
