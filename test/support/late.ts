import { expect } from './jest.ts';
import type { Answer, Shop } from './shop.ts';
import { until } from './until.ts';

/** Sends a request and returns its response. */
export type SendRequest = () => Promise<Answer>;

/**
 * Expects the response of this API to a request that exceeded REQUEST_TIMEOUT_MS, and one log line.
 */
export function expectTimeout(shop: Shop, answer: Answer, api: 'graphql' | 'rest'): void {
  const { status, headers, body } = answer;
  expect([status, headers.get('Retry-After'), headers.get('Content-Type')]).toEqual([
    503,
    '1',
    'application/json; charset=utf-8',
  ]);
  const message = 'The service took too long to respond';
  expect(body).toEqual(
    api === 'rest'
      ? { detail: message }
      : { errors: [{ message, extensions: { code: 'TIMEOUT', retryAfter: 1 } }] },
  );
  const id = headers.get('X-Request-Id') ?? 'no id';
  expect(
    shop.logged.filter((line) => line.includes('"request.timeout"') && line.includes(id)),
  ).toHaveLength(1);
  expect(answer.text).not.toMatch(/select|abort|lock|\.[jt]s\b/i);
}

/**
 * Returns the first response other than 503: a cancelled request may still hold a lock or
 * connection.
 */
export async function retryUntilServed(sendRequest: SendRequest): Promise<Answer> {
  let answer = await sendRequest();
  await until(
    async () => answer.status !== 503 || (answer = await sendRequest()).status !== 503,
    'a response other than 503',
  );
  return answer;
}
