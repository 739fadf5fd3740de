import type { IncomingMessage } from 'node:http';
import { callerBySessionKey, callerByToken } from '../auth/caller.service.ts';
import type { Caller, Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { ReadHeader } from '../kit/route.ts';
import { HttpError } from './http-error.ts';

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS: readonly ReadHeader[] = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

/**
 * Who makes the request, by its credentials; undefined where it has none. Where `Authorization` is present it alone
 * decides, and one that is no bearer token counts as none. Throws what is wrong with credentials that are there.
 */
export async function identify(ctx: Context, req: IncomingMessage): Promise<Caller | undefined> {
  refuseTwice(req);
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

// Node keeps the first of two, a proxy in front may have looked at the last (RFC 6750, 3.1: invalid_request).
function refuseTwice({ headersDistinct }: IncomingMessage): void {
  if ((headersDistinct['authorization']?.length ?? 0) > 1) throw new HttpError(400, 'There is more than one Authorization header');
}
