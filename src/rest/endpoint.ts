import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { requireCaller, requireScope } from '../request/access.ts';
import type { Caller, Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import type { Access, Input, Route } from '../api/route.ts';
import { reading } from '../request/on-replica.ts';
import { revisionOf } from '../pagination/row-counts.ts';
import { check } from '../core/validation.ts';
import { JSON_TYPE, type Wording } from '../http/responses.ts';
import { readForm, readJson } from '../http/body.ts';
import { answeredAsKept, codedTagOf, tagOf, weakTagOf } from '../http/http-cache.ts';
import { codingFor, compressedPieces, sendCompressed, type Coding } from '../http/compression.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { answerInTime } from '../http/request-timeout.ts';
import type { Exchange } from '../http/exchange.ts';
import { inSmallHeap } from '../http/small-heap.ts';
import { searchOf } from '../http/request-headers.ts';
import { clientNameOf, contextOf, type Services } from '../http/dependencies.ts';
import type { SharedAnswer } from '../http/response-cache.ts';
import type { Shortcuts } from '../graphql/compiled/shortcuts.ts';

/** What answers requests by this row, and counts them: credentials, input, the handler, and what the row says leaves. */
export function rowAnswerer(services: Services, shortcuts: Shortcuts, row: Route): (exchange: Exchange) => Promise<void> {
  const name = `${row.method} ${row.path}`;
  const wording = { row: name, ...wordingOf(row) };
  return (exchange) => {
    if (row.secret) exchange.set({ 'Cache-Control': 'no-store' });
    // Its form says whether the client speaks OAuth 2.0.
    const own = row.oauth ? { ...wording } : wording;
    return answerInTime(services, exchange, own, () => answerCounted(services, shortcuts, name, row, exchange, own));
  };
}

/** How the row words its errors. */
export function wordingOf({ errorKey = 'detail', method }: Route): Wording {
  return { errorKey, inputPart: method === 'GET' ? 'query' : 'body' };
}

// So that an operator can see who has not moved on yet (docs/leaving.md).
async function answerCounted(
  services: Services,
  shortcuts: Shortcuts,
  name: string,
  row: Route,
  exchange: Exchange,
  wording: Wording,
): Promise<void> {
  let ctx: Context | undefined;
  let caller: Caller | undefined;
  try {
    ctx = contextOf(services, exchange);
    const body = bodyReader(row, exchange, wording);
    const access = typeof row.access === 'function' ? row.access(asObject(await body())) : row.access;
    await authorize(ctx, access, exchange);
    caller = ctx.caller;
    await answerRow(ctx, shortcuts, row, exchange, body);
  } finally {
    // Who signs in is known at the end, who signs out only before it.
    const subject = (ctx?.caller ?? caller)?.username;
    if (subject !== undefined) exchange.seen.user = subject;
    services.calls.count(name, clientNameOf(exchange.req) ?? '-', subject ?? '', services.now());
  }
}

async function answerRow(ctx: Context, shortcuts: Shortcuts, row: Route, exchange: Exchange, body: ReadBody): Promise<void> {
  // What is one caller's is nobody else's, and caches know nothing of session keys.
  if (ctx.caller) exchange.set({ 'Cache-Control': 'no-store' });
  const { tally, success } = row;
  const handle = async (): Promise<unknown> => row.handle(ctx, await readInput(row, exchange, body));
  if (success.stream) {
    // Before the first row is read and from the same server, so that what is read may be newer than its tag, and never older.
    const tag = isForEveryone(tally, ctx) ? weakTagOf(await revisionOf(reading(ctx), tally)) : undefined;
    const coding = row.secret ? undefined : codingFor(exchange, ctx.config);
    if (tag !== undefined && answeredAsKept(exchange, ctx.config, tag)) return;
    const list = streamOf(await handle());
    await inSmallHeap(() => answerStream(exchange, coding, success.status, list));
    return;
  }
  const make = async () => answerOf(row, ctx, await handle());
  const answer = await (tally === undefined ? make() : shortcuts.share(ctx, exchange.req, tally, make));
  if (answer.headers) exchange.set(answer.headers);
  // Who compresses a credential beside what somebody else wrote gives it away by its length.
  const coding = row.secret ? undefined : codingFor(exchange, ctx.config, answer.body);
  if (answer.tag !== undefined && answeredAsKept(exchange, ctx.config, codedTagOf(answer.tag, coding))) return;
  await sendCompressed(exchange, coding, success.status, answer, JSON_TYPE);
}

async function authorize(ctx: Context, access: Access, exchange: Exchange): Promise<void> {
  if (access === 'login') return;
  if (!isAnonymous(exchange.req)) await identify(ctx, exchange);
  if (access === 'signed-in') requireCaller(ctx);
  else if (access !== 'public') requireScope(ctx, access);
}

type ReadBody = () => Promise<unknown>;

function bodyReader(row: Route, exchange: Exchange, wording: Wording): ReadBody {
  const read = row.input?.form ? readForm : readJson;
  let body: Promise<unknown> | undefined;
  const noting = row.oauth
    ? async () => {
        const form = await readForm(exchange);
        wording.isOauth = namesGrant(asObject(form));
        return form;
      }
    : () => read(exchange);
  return () => (body ??= noting());
}

// A parameter without a value counts as left out (RFC 6749, 3.2).
function namesGrant(form: object = {}): boolean {
  return 'grant_type' in form && form.grant_type !== '';
}

async function readInput(row: Route, { req, params }: Exchange, body: ReadBody): Promise<Input<object>> {
  const { path, query, headers, form, json } = row.input ?? {};
  return {
    path: path && check(path, params, 'path'),
    headers: headers && check(headers, req.headers, 'header'),
    query: query && check(query, queryOf(req), 'query'),
    form: form && check(form, (await body()) ?? {}, 'body'),
    json: json && check(json, (await body()) ?? {}, 'body'),
  } as Input<object>;
}

// Each parameter as text; one that is given twice as a list, which no schema takes.
function queryOf(req: IncomingMessage): Record<string, string | string[]> {
  const text = searchOf(req);
  // One parameter in plain letters, as in `?page=2`, has nothing to decode.
  const [, name, value] = /^\?(\w+)=(\w+)$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { [name]: value };
  const search = new URLSearchParams(text);
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, never>;
  for (const key of new Set(search.keys())) {
    const values = search.getAll(key);
    query[key] = values.length === 1 ? String(values[0]) : values;
  }
  return query;
}

function answerOf({ tally, success: { body: schema, headers } }: Route, ctx: Context, given: unknown): SharedAnswer {
  const body = JSON.stringify(schema.parse(given));
  return { body, ...(headers && { headers: headers(ctx, given) }), ...(isForEveryone(tally, ctx) && { tag: tagOf(body) }) };
}

function isForEveryone(tally: string | undefined, { caller }: Context): tally is string {
  return tally !== undefined && !caller;
}

async function answerStream(exchange: Exchange, coding: Coding | undefined, status: number, pieces: AsyncIterable<string>): Promise<void> {
  const { req, res } = exchange;
  const compressed = coding && compressedPieces(pieces, coding);
  const headers = { 'Content-Type': JSON_TYPE, ...(compressed && { 'Content-Encoding': coding }) };
  if (req.method === 'HEAD') {
    exchange.set(headers);
    exchange.start(status);
    res.end();
    return;
  }
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  for await (const piece of compressed ?? pieces) {
    if (res.destroyed || exchange.isGivenUp) return;
    // Not before there is something to send: until then, an error can still be told as one.
    if (!res.headersSent) {
      exchange.set(headers);
      exchange.start(status);
      exchange.setAside();
    }
    // A reader that is slower than the database sets the pace; one that has gone ends the reading.
    if (!exchange.write(piece)) await once(res, 'drain', { signal: gone.signal }).catch(() => undefined);
    if (res.destroyed) return;
  }
  res.end();
}

function streamOf(answered: unknown): AsyncIterable<string> {
  if (typeof answered !== 'object' || answered === null || !(Symbol.asyncIterator in answered)) throw new TypeError('no stream');
  return answered as AsyncIterable<string>;
}

function asObject(body: unknown): object | undefined {
  return typeof body === 'object' && body !== null ? body : undefined;
}

/** The refusal of a path that there is none of. */
export function unknownPath(): DomainError {
  return new DomainError('NOT_FOUND', 'Not found');
}
