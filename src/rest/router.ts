import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { NextFunction, Request, RequestHandler, Response, Router } from 'express';
import { requireCaller, requireScope } from '../request/access.ts';
import type { Context } from '../request/context.ts';
import type { Config } from '../core/config.ts';
import type { Input, Route } from '../api/route.ts';
import { onReplica } from '../request/on-replica.ts';
import { revisionOf } from '../pagination/row-counts.ts';
import { check, withRepeated } from '../core/validation.ts';
import { formBody, jsonBody } from '../http/body.ts';
import { allowCompression, sendStored } from '../http/compression.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { clientNameOf, httpContextOf, type Dependencies } from '../http/dependencies.ts';
import { routerOf } from '../http/endpoints.ts';
import type { CachedResponse, ResponseCache } from '../http/response-cache.ts';
import {
  JSON_TYPE,
  sendBody,
  sendIfNotModified,
  tagOf,
  type ErrorFormat,
} from '../http/responses.ts';
import { deprecationHeaders } from './deprecation.ts';

/** The REST API as Express handlers. */
export interface RestApi {
  router: Router;
  /**
   * Answers a repeated public read from the cache. Stands before all that a current response needs
   * no more.
   */
  cachedResponses: RequestHandler;
}

/** Creates the REST API of these endpoints. */
export function restApi(
  dependencies: Dependencies,
  cache: ResponseCache | undefined,
  routes: readonly Route[],
): RestApi {
  const begins = new Map(routes.map((route) => [route, begin(dependencies, route)]));
  const endpoints = routes.map((route) => {
    const { method, path, input = {}, access } = route;
    const authorization = authorize(dependencies, access);
    return {
      method,
      path,
      api: 'rest' as const,
      errorFormat: errorFormatOf(route),
      handlers: [
        (_req: Request, res: Response, next: NextFunction) => {
          begins.get(route)?.(res);
          next();
        },
        // The body may determine who may call the endpoint.
        ...(typeof access === 'function' ? [] : [authorization]),
        ...(input.form ? formBody() : input.json ? jsonBody(route.bodyOptional) : []),
        ...(typeof access === 'function' ? [authorization] : []),
        answer(cache, route),
      ],
    };
  });
  return {
    router: routerOf(endpoints),
    async cachedResponses(req, res, next) {
      const statements = dependencies.database()?.statements;
      const cached =
        statements && req.method === 'GET' && isAnonymous(req)
          ? cache?.find({ statements }, keyOf(req))
          : undefined;
      if (!cached?.route) return next();
      Object.assign(res.locals.record, { api: 'rest', endpoint: nameOf(cached.route) });
      begins.get(cached.route)?.(res);
      await send(cached.route, dependencies.config, res, cached);
    },
  };
}

/** Returns the error format of an endpoint. */
export function errorFormatOf(route: Route): ErrorFormat {
  const { errorKey = 'detail', method } = route;
  const inputPart = method === 'GET' ? 'query' : 'body';
  return { endpoint: nameOf(route), errorKey, inputPart };
}

// Sets the headers of every response of the endpoint, and counts the call, so that operators can
// see which clients still use REST (docs/migrate.md).
function begin({ config, calls, now }: Dependencies, route: Route): (res: Response) => void {
  const headers = Object.entries(deprecationHeaders(config, route));
  if (route.secret) headers.push(['Cache-Control', 'no-store']);
  return (res) => {
    for (const [header, value] of headers) res.setHeader(header, value);
    res.locals.onClose(() => {
      const { user = '' } = res.locals.record;
      calls.count(nameOf(route), clientNameOf(res.req) ?? '-', user, now());
    });
  };
}

// Identifies the caller, and rejects callers without access.
function authorize(dependencies: Dependencies, allowed: Route['access']): RequestHandler {
  return async (req, res, next) => {
    const ctx = (res.locals.ctx = httpContextOf(dependencies, res));
    const access = typeof allowed === 'function' ? allowed(asObject(req.body)) : allowed;
    if (access !== 'login' && !isAnonymous(req)) await identify(ctx, res);
    // Responses to a caller must not be cached for others, and caches do not know session keys.
    if (ctx.caller) res.setHeader('Cache-Control', 'no-store');
    if (access === 'signed-in') requireCaller(ctx);
    else if (access !== 'public' && access !== 'login') requireScope(ctx, access);
    next();
  };
}

// Reads the input, calls the handler and sends its result.
function answer(cache: ResponseCache | undefined, route: Route): RequestHandler {
  const { rowCounts, success } = route;
  return async (req, res) => {
    const { ctx } = res.locals;
    // The client has gone, or the time is up.
    if (!ctx) return;
    if (route.oauth && hasGrantType(req.body))
      res.locals.errorFormat = { ...errorFormatOf(route), isOauth: true };
    const handle = async () => route.handle(ctx, readInput(route, req));
    if (success.stream) return sendStream(route, ctx, res, handle);
    const make = async (): Promise<CachedResponse> => {
      const result = await handle();
      const text = JSON.stringify(success.body.parse(result));
      return {
        route,
        body: text,
        ...(success.headers && { headers: success.headers(ctx, result) }),
        ...(isForEveryone(route, ctx) && { tag: tagOf(text) }),
      };
    };
    const response = await (cache && rowCounts !== undefined && isAnonymous(req)
      ? cache.getOrMake(ctx, keyOf(req), rowCounts, make)
      : make());
    // A login has a caller only at the end.
    if (ctx.caller) res.locals.record.user = ctx.caller.username;
    await send(route, ctx.config, res, response);
  };
}

async function send(
  { success: { status }, secret }: Route,
  config: Config,
  res: Response,
  response: CachedResponse,
): Promise<void> {
  if (response.headers)
    for (const [name, value] of Object.entries(response.headers)) res.append(name, value);
  if (secret || status !== 200) return sendBody(res, status, response.body);
  allowCompression(res, config, response);
  if (response.tag !== undefined && sendIfNotModified(res, config, response.tag)) return;
  await sendStored(res, response);
}

async function sendStream(
  route: Route,
  ctx: Context,
  res: Response,
  handle: () => Promise<unknown>,
): Promise<void> {
  // Reads the revision before the first row, so that the rows may be newer than the tag, but never
  // older. Rows of a replica may be older, because a load balancer may lead to several replicas.
  const tag =
    isForEveryone(route, ctx) && onReplica(ctx) === ctx
      ? tagOf(await revisionOf(ctx, route.rowCounts))
      : undefined;
  if (!route.secret) allowCompression(res, ctx.config);
  if (tag !== undefined && sendIfNotModified(res, ctx.config, tag)) return;
  const chunks = streamOf(await handle())[Symbol.asyncIterator]();
  const isHead = res.req.method === 'HEAD';
  // Until the first chunk, an error response is still possible.
  const first = isHead ? undefined : await chunks.next();
  if (res.headersSent) return void (await chunks.return?.());
  res.status(route.success.status).setHeader('Content-Type', JSON_TYPE);
  res.flushHeaders();
  // The rest depends on the reader.
  res.locals.exclude();
  if (isHead || first?.done) return void res.end();
  const joined = async function* () {
    yield String(first?.value);
    try {
      yield* { [Symbol.asyncIterator]: () => chunks };
    } catch (error) {
      res.locals.record.end = 'broken';
      throw error;
    }
  };
  // A slow reader pauses the database read. A disconnected one ends it.
  await pipeline(Readable.from(joined()), res);
}

function streamOf(result: unknown): AsyncIterable<string> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result))
    throw new TypeError('The result is not a stream');
  return result as AsyncIterable<string>;
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

// Cached responses of the GraphQL API have other keys.
function keyOf({ originalUrl }: Request): string {
  return `GET ${originalUrl}`;
}

function isForEveryone(route: Route, { caller }: Context): route is Route & { rowCounts: string } {
  return route.rowCounts !== undefined && !caller;
}

function readInput(route: Route, req: Request): Input<object> {
  const { path, query, headers, form, json } = route.input ?? {};
  return {
    path: path && check(path, req.params, 'path'),
    headers: headers && check(headers, req.headers, 'header'),
    query: query && check(query, queryOf(req), 'query'),
    form: form && check(form, req.body ?? {}, 'body'),
    json: json && check(json, req.body ?? {}, 'body'),
  } as Input<object>;
}

function queryOf({ url }: Request): Readonly<Record<string, unknown>> {
  const text = url.slice(url.indexOf('?') + 1 || url.length);
  // A single plain parameter, as in `?page=2`, needs no decoding.
  const [, name, value] = /^(\w+)=(\w+)$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { [name]: value };
  return withRepeated(new URLSearchParams(text));
}

// A parameter without a value counts as absent (RFC 6749, 3.2).
function hasGrantType(form: unknown): boolean {
  const { grant_type: grantType = '' } = (asObject(form) ?? {}) as { grant_type?: unknown };
  return grantType !== '';
}

function asObject(body: unknown): object | undefined {
  return typeof body === 'object' && body !== null ? body : undefined;
}
