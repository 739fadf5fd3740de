import pLimit from 'p-limit';
import type { Deployment } from './deployment.ts';
import { Broken, NotTried, type Need, type Promised, type Section } from './promised.ts';

/** How many promises are looked at at once. */
const AT_ONCE = 4;

/** How to give what is needed. */
const NEEDED = new Map<Need, string>([
  ['user', 'a user: --username and a password'],
  ['disabled user', 'a disabled user: --disabled-username'],
  ['disabled password', 'the disabled user’s password: CONTRACT_DISABLED_PASSWORD'],
  ['secret', 'the signing secret: CONTRACT_SIGNING_SECRET'],
  ['write', '--write, for it may create a product'],
]);

/** What was seen of a promise. */
export type Seen =
  { outcome: 'holds' } | { outcome: 'broken'; asked: string; expected: string; came: string } | { outcome: 'not tried'; why: string };

/** A promise and what was seen of it. */
export interface Result {
  promised: Promised;
  seen: Seen;
}

/** Looks at the promises of the sections, a few at once, and then, one by one, at those that create something. */
export async function run(sections: readonly Section[], at: Deployment): Promise<Result[]> {
  const limit = pLimit(AT_ONCE);
  const all = sections.flatMap(({ promises }) => promises);
  const [writing, reading] = [true, false].map((writes) => all.filter(({ needs }) => needs.includes('write') === writes)) as [
    Promised[],
    Promised[],
  ];
  const results = new Map<Promised, Seen>();
  await Promise.all(reading.map((promised) => limit(async () => results.set(promised, await look(promised, at)))));
  for (const promised of writing) results.set(promised, await look(promised, at));
  return all.map((promised) => ({ promised, seen: results.get(promised) ?? { outcome: 'not tried', why: '' } }));
}

/** Looks whether a promise holds. What it tells has no secret in it. */
export async function look({ needs, check }: Promised, at: Deployment): Promise<Seen> {
  const lacking = needs.find((need) => !at.has(need));
  if (lacking !== undefined) return { outcome: 'not tried', why: `needs ${NEEDED.get(lacking) ?? lacking}` };
  try {
    await check(at);
    return { outcome: 'holds' };
  } catch (error) {
    const hide = (text: string) => at.secrets.hide(text);
    if (error instanceof NotTried) return { outcome: 'not tried', why: hide(error.message) };
    if (!(error instanceof Broken)) throw error;
    return { outcome: 'broken', asked: hide(error.asked), expected: hide(error.expected), came: hide(error.came) };
  }
}
