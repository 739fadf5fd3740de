import { Extensions } from 'type-graphql';

/** The extension of mutations for which `Idempotency-Key` is ignored (graphql/idempotency.plugin.ts). */
export const IGNORES_IDEMPOTENCY_KEY = 'ignoresIdempotencyKey';

/**
 * Marks mutations for which `Idempotency-Key` is ignored, as the REST logins ignore it. With a key,
 * the database would hold a token, or a fingerprint by which a password can be guessed, or a
 * refusal would roll back a count that limits requests.
 */
export function IgnoresIdempotencyKey(): MethodDecorator {
  return Extensions({ [IGNORES_IDEMPOTENCY_KEY]: true });
}
