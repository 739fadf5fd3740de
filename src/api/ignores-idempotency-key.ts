import { Extensions } from 'type-graphql';

/** Extension of mutations that ignore `Idempotency-Key` (graphql/idempotency.plugin.ts). */
export const IGNORES_IDEMPOTENCY_KEY = 'ignoresIdempotencyKey';

/**
 * Marks mutations that ignore `Idempotency-Key`, as the REST logins do. Otherwise, the database
 * would store a token or a fingerprint that helps to guess a password, or an error would roll back
 * a count that limits requests.
 */
export function IgnoresIdempotencyKey(): MethodDecorator {
  return Extensions({ [IGNORES_IDEMPOTENCY_KEY]: true });
}
