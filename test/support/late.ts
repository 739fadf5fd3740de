import { expect } from './jest.ts';
import type { Answer, Shop } from './shop.ts';
import { until } from './until.ts';

/** A request, and its answer. */
export type Ask = () => Promise<Answer>;

/** Expects the answer of the door to a request that took longer than REQUEST_DEADLINE_MS, and its one line in the log. */
export function expectLate(shop: Shop, answer: Answer, door: 'graphql' | 'rest'): void {
  const { status, headers, body } = answer;
  expect([status, headers.get('Retry-After'), headers.get('Content-Type')]).toEqual([503, '1', 'application/json; charset=utf-8']);
  const message = 'The service took too long to answer';
  expect(body).toEqual(door === 'rest' ? { detail: message } : { errors: [{ message, extensions: { code: 'TIMEOUT', retryAfter: 1 } }] });
  const id = headers.get('X-Request-Id') ?? 'no id';
  expect(shop.logged.filter((line) => line.includes('"request.timeout"') && line.includes(id))).toHaveLength(1);
  expect(answer.text).not.toMatch(/select|abort|lock|\.[jt]s\b/i);
}

/** The first answer that is not 503: what was cancelled may still hold what this one needs. */
export async function served(ask: Ask): Promise<Answer> {
  let answer = await ask();
  await until(async () => answer.status !== 503 || (answer = await ask()).status !== 503, 'an answer other than 503');
  return answer;
}
