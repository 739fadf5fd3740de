import type { IncomingMessage } from 'node:http';
import { callerBySessionKey, callerByToken } from '../auth/caller.service.ts';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { ReadHeader } from '../kit/route.ts';

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS: readonly ReadHeader[] = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

/** Whether the request carries anything that could name its caller. */
export function isAnonymous({ headers }: IncomingMessage): boolean {
  return headers.authorization === undefined && headers['x-session-id'] === undefined && headers['x-sessionid'] === undefined;
}

/**
 * Makes who the credentials name the caller; nobody, where there are none. Where `Authorization` is present it alone
 * decides, and one that is no bearer token counts as none. Throws what is wrong with credentials that are there.
 */
export async function identify(ctx: Context, req: IncomingMessage): Promise<void> {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token !== undefined) ctx.caller = await callerByToken(ctx, token);
    return;
  }
  const keys = [req.headers['x-session-id'], req.headers['x-sessionid']].filter((key) => typeof key === 'string');
  const [key, other = key] = keys;
  if (key === undefined) return;
  if (key !== other) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  ctx.caller = await callerBySessionKey(ctx, key);
}
