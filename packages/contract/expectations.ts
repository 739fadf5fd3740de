import { isDeepStrictEqual } from 'node:util';
import { isRecord, memberOf, type HttpResponse } from './response.ts';
import { Failed } from './promised.ts';

/** Throws `Failed` unless the condition is true. */
export function expectOf(
  response: HttpResponse,
  expected: string,
  condition: boolean,
  actual = response.summary,
): void {
  if (!condition) throw new Failed(response.request, expected, actual);
}

export function hasStatus(response: HttpResponse, ...statuses: number[]): void {
  expectOf(response, `status ${statuses.join(' or ')}`, statuses.includes(response.status));
}

/** The status is 2xx. */
export function isSuccess(response: HttpResponse): void {
  expectOf(response, 'a status of 2xx', response.status >= 200 && response.status < 300);
}

/** The status is 4xx. */
export function isRejected(response: HttpResponse): void {
  expectOf(response, 'a status of 4xx', response.status >= 400 && response.status < 500);
}

/** The header is this text or matches this pattern. */
export function hasHeader(response: HttpResponse, name: string, value: string | RegExp): void {
  const found = response.headers.get(name);
  const matches =
    found !== null && (typeof value === 'string' ? found === value : value.test(found));
  const wanted = typeof value === 'string' ? value : `matching ${value}`;
  expectOf(
    response,
    `the header ${name}: ${wanted}`,
    matches,
    `${response.status} with ${found === null ? 'no such header' : `${name}: ${found}`}`,
  );
}

/** The response has a challenge for a bearer token. */
export function hasBearerChallenge(response: HttpResponse): void {
  hasHeader(response, 'WWW-Authenticate', /^bearer\b/i);
}

/** The member of the body is this message or matches this pattern. */
export function hasMessage(
  response: HttpResponse,
  member: 'detail' | 'data',
  message: string | RegExp,
  meaning = String(message),
): void {
  const actual = response.member(member);
  const matches =
    typeof actual === 'string' &&
    (typeof message === 'string' ? actual === message : message.test(actual));
  expectOf(
    response,
    `${member} with the message ${typeof message === 'string' ? JSON.stringify(message) : meaning}`,
    matches,
  );
}

/** The response has this status and exactly this body. */
export function isError(
  response: HttpResponse,
  status: number,
  body: Record<string, string>,
): void {
  hasStatus(response, status);
  isExactly(response, body);
}

/** The body is exactly this value. */
export function isExactly(response: HttpResponse, value: unknown): void {
  expectOf(response, `the body ${JSON.stringify(value)}`, isDeepStrictEqual(response.body, value));
}

/** The value has exactly these members. */
export function hasOnly(response: HttpResponse, value: unknown, ...names: string[]): void {
  const found = isRecord(value) ? Object.keys(value) : [];
  expectOf(
    response,
    `exactly ${names.join(', ')}`,
    isDeepStrictEqual(found.toSorted(), names.toSorted()),
  );
}

/** The entries of a list, as an array or in any envelope. */
export function listOf(response: HttpResponse): unknown[] {
  hasStatus(response, 200);
  const { body } = response;
  const list = Array.isArray(body)
    ? (body as unknown[])
    : isRecord(body)
      ? Object.values(body).find(Array.isArray)
      : undefined;
  if (list === undefined) throw new Failed(response.request, 'a list of entries', response.summary);
  return list as unknown[];
}

/** The first entries of a JSON array of objects that may have been read in part. */
export function firstEntries(response: HttpResponse): unknown[] {
  hasStatus(response, 200);
  expectOf(response, 'a JSON array', response.text.trimStart().startsWith('['));
  if (Array.isArray(response.body)) return response.body;
  try {
    return [...wholeObjects(response.text)].map((text) => JSON.parse(text) as unknown);
  } catch {
    throw new Failed(response.request, 'a JSON array of objects', response.summary);
  }
}

/** The body as a page with its envelope. */
export function pageOf(response: HttpResponse): {
  items: unknown[];
  count: number;
  next: string | null;
  previous: string | null;
} {
  hasStatus(response, 200);
  const { body } = response;
  hasOnly(response, body, 'items', 'count', 'next', 'previous');
  const [items, count, next, previous] = ['items', 'count', 'next', 'previous'].map((name) =>
    memberOf(body, name),
  );
  const isLink = (link: unknown): link is string | null =>
    link === null || (typeof link === 'string' && URL.canParse(link));
  if (Array.isArray(items) && typeof count === 'number' && isLink(next) && isLink(previous))
    return { items, count, next, previous };
  throw new Failed(
    response.request,
    'items, count, and next and previous as URLs or null',
    response.summary,
  );
}

/** The response is 422 with an error for each location, in the format of the original services. */
export function hasFieldErrors(response: HttpResponse, ...locations: string[][]): void {
  hasStatus(response, 422);
  const detail = response.member('detail');
  const wanted = locations.map((loc) => loc.join('.')).join(', ');
  const found = (Array.isArray(detail) ? detail : []) as unknown[];
  const isShaped = found.every(
    (one) =>
      isRecord(one) &&
      ['type', 'msg'].every((name) => typeof one[name] === 'string') &&
      Object.keys(one).length === 3,
  );
  const isNamed = isDeepStrictEqual(
    found.map((one) => memberOf(one, 'loc')),
    locations,
  );
  expectOf(response, `detail to list {type, loc, msg} for ${wanted}`, isShaped && isNamed);
}

export function isTextOrNull(value: unknown): boolean {
  return value === null || value === undefined || typeof value === 'string';
}

// Yields each complete object of the array.
function* wholeObjects(text: string): Generator<string> {
  let depth = 0;
  let start = 0;
  for (const { 0: found, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (found === '{' && depth++ === 0) start = index;
    if (found === '}' && --depth === 0) yield text.slice(start, index + 1);
  }
}
