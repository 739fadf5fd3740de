import pLimit from 'p-limit';
import type { Deployment } from './deployment.ts';
import { curlOf } from './curl.ts';
import { Failed, Skipped, type Need, type Promised, type Section } from './promised.ts';

/** Maximum number of concurrent checks. */
const CONCURRENCY = 4;

/** The option for each need. */
const NEEDED = new Map<Need, string>([
  ['user', 'a user: --username and a password'],
  ['disabled user', 'a disabled user: --disabled-username'],
  ['disabled password', 'the disabled user’s password: CONTRACT_DISABLED_PASSWORD'],
  ['secret', 'the signing secret: CONTRACT_SIGNING_SECRET'],
  ['write', '--write, because it may create a product'],
]);

/** The result of a check that failed. */
export interface Failure {
  outcome: 'failed';
  request: string;
  expected: string;
  response: string;
  /** A shell command that sends the request, if a request was sent. */
  command: string | undefined;
}

/** The result of a check. */
export type Verdict = { outcome: 'passed' } | Failure | { outcome: 'skipped'; reason: string };

/** A promise and the result of its check. */
export interface Result {
  promised: Promised;
  verdict: Verdict;
}

/** Runs the checks: concurrently those that only read, then one by one those that create. */
export async function run(sections: readonly Section[], at: Deployment): Promise<Result[]> {
  const limit = pLimit(CONCURRENCY);
  const all = sections.flatMap(({ promises }) => promises);
  const [writing, reading] = [true, false].map((writes) =>
    all.filter(({ needs }) => needs.includes('write') === writes),
  ) as [Promised[], Promised[]];
  const results = new Map<Promised, Verdict>();
  await Promise.all(
    reading.map((promised) =>
      limit(async () => results.set(promised, await runCheck(promised, at))),
    ),
  );
  for (const promised of writing) results.set(promised, await runCheck(promised, at));
  return all.map((promised) => ({
    promised,
    verdict: results.get(promised) ?? { outcome: 'skipped', reason: '' },
  }));
}

/** Runs one check. The result contains no secret. */
export async function runCheck({ needs, check }: Promised, at: Deployment): Promise<Verdict> {
  const missing = needs.find((need) => !at.has(need));
  if (missing !== undefined)
    return { outcome: 'skipped', reason: `needs ${NEEDED.get(missing) ?? missing}` };
  try {
    await check(at);
    return { outcome: 'passed' };
  } catch (error) {
    const redact = (text: string) => at.secrets.redact(text);
    if (error instanceof Skipped) return { outcome: 'skipped', reason: redact(error.message) };
    if (!(error instanceof Failed)) throw error;
    const { request } = error;
    return {
      outcome: 'failed',
      request: redact(typeof request === 'string' ? request : request.description),
      command: typeof request === 'string' ? undefined : curlOf(request, at.secrets),
      expected: redact(error.expected),
      response: redact(error.response),
    };
  }
}
