import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../../core/errors.ts';
import { DAY_MS } from '../../core/time.ts';

/** Maximum length of a stored response, in bytes. */
const MAX_RESPONSE = 262_144;
/** Maximum length of responses that are not counted, in bytes: those of ordinary writes. */
const UNCOUNTED = 1_024;
/** Maximum number of counted bytes that one caller has stored within a day, in this process. */
const MAX_CALLER = 32_000_000;

const limiter = new RateLimiterMemory({ points: MAX_CALLER, duration: DAY_MS / 1000 });

/**
 * Counts a response that is stored for a key of the caller. Throws QUERY_TOO_COMPLEX for a response
 * that is too long, and RATE_LIMITED after too many long responses.
 */
export async function countStored(caller: string, bytes: number): Promise<void> {
  if (bytes > MAX_RESPONSE) {
    throw new DomainError(
      'QUERY_TOO_COMPLEX',
      `Response to a request with an Idempotency-Key exceeds ${MAX_RESPONSE} bytes: select fewer fields`,
    );
  }
  if (bytes <= UNCOUNTED) return;
  try {
    await limiter.consume(caller, bytes);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const wait = Math.ceil(error.msBeforeNext / 1000);
    throw new DomainError(
      'RATE_LIMITED',
      'Too many long responses stored for your idempotency keys: select fewer fields',
      [],
      wait,
    );
  }
}
