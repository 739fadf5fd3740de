import { isDeepStrictEqual } from 'node:util';
import { isRecord, memberOf, type Answer } from './answer.ts';
import { Broken } from './promised.ts';

/** Throws what is broken unless the answer is as expected. */
export function expectOf(answer: Answer, expected: string, holds: boolean, came = answer.summary): void {
  if (!holds) throw new Broken(answer.asked, expected, came);
}

export function hasStatus(answer: Answer, ...statuses: number[]): void {
  expectOf(answer, `status ${statuses.join(' or ')}`, statuses.includes(answer.status));
}

/** The answer is a success of whatever kind. */
export function succeeds(answer: Answer): void {
  expectOf(answer, 'a success', answer.status >= 200 && answer.status < 300);
}

/** The answer says that the fault is the client's. */
export function isRefused(answer: Answer): void {
  expectOf(answer, 'a refusal, a status of 4xx', answer.status >= 400 && answer.status < 500);
}

/** The header is there, and is this text or has this form. */
export function hasHeader(answer: Answer, name: string, value: string | RegExp): void {
  const found = answer.headers.get(name);
  const holds = found !== null && (typeof value === 'string' ? found === value : value.test(found));
  const wanted = typeof value === 'string' ? value : `in the form ${value}`;
  expectOf(
    answer,
    `the header ${name}: ${wanted}`,
    holds,
    `${answer.status} with ${found === null ? 'no such header' : `${name}: ${found}`}`,
  );
}

/** The header names the scheme by which a client could sign in. */
export function challenges(answer: Answer): void {
  hasHeader(answer, 'WWW-Authenticate', /^bearer\b/i);
}

/** The body has a message under this name, which is this text or speaks of this. */
export function says(answer: Answer, member: 'detail' | 'data', message: string | RegExp, meaning = String(message)): void {
  const said = answer.member(member);
  const holds = typeof said === 'string' && (typeof message === 'string' ? said === message : message.test(said));
  expectOf(answer, `${member} to say ${typeof message === 'string' ? JSON.stringify(message) : meaning}`, holds);
}

/** The body is an error with this text as its only member. */
export function isError(answer: Answer, status: number, body: Record<string, string>): void {
  hasStatus(answer, status);
  isExactly(answer, body);
}

/** The body is this value, no more and no less. */
export function isExactly(answer: Answer, value: unknown): void {
  expectOf(answer, `the body ${JSON.stringify(value)}`, isDeepStrictEqual(answer.body, value));
}

/** The body has these members and no others. */
export function hasOnly(answer: Answer, value: unknown, ...names: string[]): void {
  const found = isRecord(value) ? Object.keys(value) : [];
  expectOf(answer, `exactly ${names.join(', ')}`, isDeepStrictEqual(found.toSorted(), names.toSorted()));
}

/** The entries that an answer lists, in whatever envelope. */
export function listOf(answer: Answer): unknown[] {
  hasStatus(answer, 200);
  const { body } = answer;
  const list = Array.isArray(body) ? (body as unknown[]) : isRecord(body) ? Object.values(body).find(Array.isArray) : undefined;
  if (list === undefined) throw new Broken(answer.asked, 'a list of entries', answer.summary);
  return list as unknown[];
}

/** The entries at the beginning of an answer of which not all may have been read: a JSON array of objects. */
export function beginningOf(answer: Answer): unknown[] {
  hasStatus(answer, 200);
  expectOf(answer, 'a JSON array', answer.text.trimStart().startsWith('['));
  if (Array.isArray(answer.body)) return answer.body;
  try {
    return [...wholeObjects(answer.text)].map((text) => JSON.parse(text) as unknown);
  } catch {
    throw new Broken(answer.asked, 'a JSON array of objects', answer.summary);
  }
}

/** The body as an envelope of a page. */
export function pageOf(answer: Answer): { items: unknown[]; count: number; next: string | null; previous: string | null } {
  hasStatus(answer, 200);
  const { body } = answer;
  hasOnly(answer, body, 'items', 'count', 'next', 'previous');
  const [items, count, next, previous] = ['items', 'count', 'next', 'previous'].map((name) => memberOf(body, name));
  const isLink = (link: unknown): link is string | null => link === null || (typeof link === 'string' && URL.canParse(link));
  if (Array.isArray(items) && typeof count === 'number' && isLink(next) && isLink(previous)) return { items, count, next, previous };
  throw new Broken(answer.asked, 'items, a count, and next and previous that are addresses or null', answer.summary);
}

/** The refusal names these fields, and where they stand, in the shape that clients of the original services know. */
export function namesFields(answer: Answer, ...locations: string[][]): void {
  hasStatus(answer, 422);
  const detail = answer.member('detail');
  const wanted = locations.map((loc) => loc.join('.')).join(', ');
  const found = (Array.isArray(detail) ? detail : []) as unknown[];
  const isShaped = found.every(
    (one) => isRecord(one) && ['type', 'msg'].every((name) => typeof one[name] === 'string') && Object.keys(one).length === 3,
  );
  const isNamed = isDeepStrictEqual(
    found.map((one) => memberOf(one, 'loc')),
    locations,
  );
  expectOf(answer, `detail to list {type, loc, msg} for ${wanted}`, isShaped && isNamed);
}

export function isTextOrNull(value: unknown): boolean {
  return value === null || value === undefined || typeof value === 'string';
}

// Where each object of the array ends; one that has not come whole is left out.
function* wholeObjects(text: string): Generator<string> {
  let depth = 0;
  let start = 0;
  for (const { 0: found, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (found === '{' && depth++ === 0) start = index;
    if (found === '}' && --depth === 0) yield text.slice(start, index + 1);
  }
}
