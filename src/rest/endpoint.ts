import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { requireCaller, requireScope } from '../request/access.ts';
import type { Caller, Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import type { Access, Input, Route } from '../api/route.ts';
import { onReplica } from '../request/on-replica.ts';
import { revisionOf } from '../pagination/row-counts.ts';
import { check, withRepeated } from '../core/validation.ts';
import { JSON_TYPE, type ErrorFormat } from '../http/responses.ts';
import { discard, readForm, readJson } from '../http/body.ts';
import { answerFromClientCache, codedTagOf, tagOf, weakTagOf } from '../http/http-cache.ts';
import { codingFor, compressedChunks, sendCompressed, type Coding } from '../http/compression.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { withTimeout } from '../http/request-timeout.ts';
import type { Exchange } from '../http/exchange.ts';
import { inSmallHeap, outsideSmallHeap } from '../http/small-heap.ts';
import { queryStringOf } from '../http/request-headers.ts';
import { clientNameOf, contextOf, type Dependencies } from '../http/dependencies.ts';
import type { CachedResponse, ReadThroughCache } from '../http/response-cache.ts';

/**
 * Returns the handler of an endpoint: authenticates, reads input, sends the response, and counts.
 */
export function endpointHandler(
  dependencies: Dependencies,
  share: ReadThroughCache,
  endpoint: Route,
): (exchange: Exchange) => Promise<void> {
  const name = `${endpoint.method} ${endpoint.path}`;
  const errorFormat = { endpoint: name, ...errorFormatOf(endpoint) };
  return (exchange) => {
    if (endpoint.secret) exchange.set({ 'Cache-Control': 'no-store' });
    // The form shows whether the client uses OAuth 2.0.
    const ownFormat = endpoint.oauth ? { ...errorFormat } : errorFormat;
    return withTimeout(dependencies, exchange, ownFormat, () =>
      answerCounted(dependencies, share, name, endpoint, exchange, ownFormat),
    );
  };
}

/** Returns the error format of an endpoint. */
export function errorFormatOf({ errorKey = 'detail', method }: Route): ErrorFormat {
  return { errorKey, inputPart: method === 'GET' ? 'query' : 'body' };
}

// Counts the call, so that operators can see which clients still use REST (docs/migrate.md).
async function answerCounted(
  dependencies: Dependencies,
  share: ReadThroughCache,
  name: string,
  endpoint: Route,
  exchange: Exchange,
  errorFormat: ErrorFormat,
): Promise<void> {
  let ctx: Context | undefined;
  let caller: Caller | undefined;
  try {
    ctx = contextOf(dependencies, exchange);
    const body = bodyReader(endpoint, exchange, errorFormat);
    const access =
      typeof endpoint.access === 'function'
        ? endpoint.access(asObject(await body()))
        : endpoint.access;
    await authorize(ctx, access, exchange);
    caller = ctx.caller;
    await answerEndpoint(ctx, share, endpoint, exchange, body);
  } finally {
    // A login has a caller only at the end, and a logout only before.
    const subject = (ctx?.caller ?? caller)?.username;
    if (subject !== undefined) exchange.record.user = subject;
    dependencies.calls.count(
      name,
      clientNameOf(exchange.req) ?? '-',
      subject ?? '',
      dependencies.now(),
    );
  }
}

async function answerEndpoint(
  ctx: Context,
  share: ReadThroughCache,
  endpoint: Route,
  exchange: Exchange,
  body: ReadBody,
): Promise<void> {
  // Responses to a caller must not be cached for others, and caches do not know session keys.
  if (ctx.caller) exchange.set({ 'Cache-Control': 'no-store' });
  const { rowCounts, success } = endpoint;
  const handle = async (): Promise<unknown> =>
    endpoint.handle(ctx, await readInput(endpoint, exchange, body));
  if (success.stream) {
    // Reads the revision before the first row and from the same server, so that the rows may be
    // newer than the tag, but never older.
    const tag = isForEveryone(rowCounts, ctx)
      ? weakTagOf(await revisionOf(onReplica(ctx), rowCounts))
      : undefined;
    const coding = endpoint.secret ? undefined : codingFor(exchange, ctx.config);
    if (tag !== undefined && answerFromClientCache(exchange, ctx.config, tag)) return;
    const stream = streamOf(await handle());
    await inSmallHeap(() => sendStream(exchange, coding, success.status, stream));
    return;
  }
  const make = async () => responseOf(endpoint, ctx, await handle());
  const response = await (rowCounts === undefined
    ? make()
    : share(ctx, exchange.req, rowCounts, make));
  if (response.headers) exchange.set(response.headers);
  // Compressing a credential together with text from other clients would reveal it by the length.
  const coding = endpoint.secret ? undefined : codingFor(exchange, ctx.config, response.body);
  if (
    response.tag !== undefined &&
    answerFromClientCache(exchange, ctx.config, codedTagOf(response.tag, coding))
  )
    return;
  await sendCompressed(exchange, coding, success.status, response, JSON_TYPE);
}

async function authorize(ctx: Context, access: Access, exchange: Exchange): Promise<void> {
  if (access === 'login') return;
  if (!isAnonymous(exchange.req)) await identify(ctx, exchange);
  if (access === 'signed-in') requireCaller(ctx);
  else if (access !== 'public') requireScope(ctx, access);
}

type ReadBody = () => Promise<unknown>;

function bodyReader(endpoint: Route, exchange: Exchange, errorFormat: ErrorFormat): ReadBody {
  let body: Promise<unknown> | undefined;
  const readBody = endpoint.oauth
    ? async () => {
        const form = await readForm(exchange);
        errorFormat.isOauth = hasGrantType(asObject(form));
        return form;
      }
    : () => (endpoint.input?.form ? readForm(exchange) : readJson(exchange, endpoint.bodyOptional));
  return () => (body ??= readBody());
}

// A parameter without a value counts as absent (RFC 6749, 3.2).
function hasGrantType(form: object = {}): boolean {
  return 'grant_type' in form && form.grant_type !== '';
}

async function readInput(
  endpoint: Route,
  { req, params }: Exchange,
  body: ReadBody,
): Promise<Input<object>> {
  const { path, query, headers, form, json } = endpoint.input ?? {};
  return {
    path: path && check(path, params, 'path'),
    headers: headers && check(headers, req.headers, 'header'),
    query: query && check(query, queryOf(req), 'query'),
    form: form && check(form, (await body()) ?? {}, 'body'),
    json: json && check(json, (await body()) ?? {}, 'body'),
  } as Input<object>;
}

function queryOf(req: IncomingMessage): Readonly<Record<string, unknown>> {
  const text = queryStringOf(req);
  // A single plain parameter, as in `?page=2`, needs no decoding.
  const [, name, value] = /^\?(\w+)=(\w+)$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { [name]: value };
  return withRepeated(new URLSearchParams(text));
}

function responseOf(
  { rowCounts, success: { body: schema, headers } }: Route,
  ctx: Context,
  result: unknown,
): CachedResponse {
  const body = JSON.stringify(schema.parse(result));
  return {
    body,
    ...(headers && { headers: headers(ctx, result) }),
    ...(isForEveryone(rowCounts, ctx) && { tag: tagOf(body) }),
  };
}

function isForEveryone(rowCounts: string | undefined, { caller }: Context): rowCounts is string {
  return rowCounts !== undefined && !caller;
}

async function sendStream(
  exchange: Exchange,
  coding: Coding | undefined,
  status: number,
  chunks: AsyncIterable<string>,
): Promise<void> {
  const { req, res } = exchange;
  const compressed = coding && compressedChunks(chunks, coding);
  const headers = { 'Content-Type': JSON_TYPE, ...(compressed && { 'Content-Encoding': coding }) };
  if (req.method === 'HEAD') {
    exchange.set(headers);
    exchange.start(status);
    res.end();
    return;
  }
  discard(req);
  const disconnected = new AbortController();
  res.once('close', () => disconnected.abort());
  for await (const chunk of compressed ?? chunks) {
    if (res.destroyed || exchange.isCancelled) return;
    // Not before the first chunk: until then, an error response is still possible.
    if (!res.headersSent) {
      exchange.set(headers);
      exchange.start(status);
    }
    // A slow reader pauses the database read. A disconnected one ends it.
    if (!exchange.write(chunk))
      await outsideSmallHeap(
        once(res, 'drain', { signal: disconnected.signal }).catch(() => undefined),
      );
    if (res.destroyed) return;
  }
  res.end();
}

function streamOf(result: unknown): AsyncIterable<string> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result))
    throw new TypeError('The result is not a stream');
  return result as AsyncIterable<string>;
}

function asObject(body: unknown): object | undefined {
  return typeof body === 'object' && body !== null ? body : undefined;
}

/** Returns the error for an unknown path. */
export function unknownPath(): DomainError {
  return new DomainError('NOT_FOUND', 'Not found');
}
