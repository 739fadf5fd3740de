import type { IncomingMessage } from 'node:http';
import { callerBySessionKey, callerByToken } from '../auth/caller.service.ts';
import type { Caller, Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { ReadHeader } from '../kit/route.ts';

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS: readonly ReadHeader[] = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

/**
 * Who makes the request, by its credentials; undefined where it has none. Where `Authorization` is present it alone
 * decides, and one that is no bearer token counts as none. Throws what is wrong with credentials that are there.
 */
export async function identify(ctx: Context, req: IncomingMessage): Promise<Caller | undefined> {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    return token === undefined ? undefined : callerByToken(ctx, token);
  }
  const keys = [req.headers['x-session-id'], req.headers['x-sessionid']].filter((key) => typeof key === 'string');
  const [key, other = key] = keys;
  if (key === undefined) return undefined;
  if (key !== other) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  return callerBySessionKey(ctx, key);
}
