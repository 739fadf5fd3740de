import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { requireCaller, requireScope } from '../request/access.ts';
import type { Context } from '../request/context.ts';
import { deprecationHeaders } from '../core/deprecation.ts';
import type { Input, Route } from '../api/route.ts';
import { check, withRepeated } from '../core/validation.ts';
import { formBody, jsonBody } from '../http/body.ts';
import { RequestContext, findCaller, type Dependencies } from '../http/dependencies.ts';
import type { Endpoint } from '../http/endpoints.ts';
import { duplicateError, isAnonymous } from '../http/headers.ts';
import type { CachedResponse, ResponseCache } from '../http/response-cache.ts';
import {
  JSON_TYPE,
  compressStream,
  sendAgain,
  sendBody,
  sendCompressible,
  sharedHeaders,
  tagOf,
} from '../http/responses.ts';

/** Returns the endpoints of the REST API. */
export function restEndpoints(
  dependencies: Dependencies,
  cache: ResponseCache,
  routes: readonly Route[],
): Endpoint[] {
  return routes.map((route) => {
    const { method, path, input = {}, access, errorKey = 'detail' } = route;
    const headers = new Map(Object.entries(deprecationHeaders(dependencies.config, route)));
    if (route.secret) headers.set('Cache-Control', 'no-store');
    const authorization = authorize(dependencies, access);
    const body = input.form ? [formBody] : input.json ? [jsonBody(route.bodyOptional)] : [];
    const handlers: RequestHandler[] = [
      (req, res, next) => {
        countCall(dependencies, req, res.setHeaders(headers));
        next();
      },
      // The body may determine who may call the endpoint.
      ...(typeof access === 'function' ? [...body, authorization] : [authorization, ...body]),
      answer(cache, route),
    ];
    return { method, path, api: 'rest', errorKey, handlers };
  });
}

/** Answers a repeated public read from the cache, before all that it needs no more. */
export function cachedResponses(dependencies: Dependencies, cache: ResponseCache): RequestHandler {
  return (req, res, next) => {
    const statements = dependencies.database()?.statements;
    const isPlain = req.method === 'GET' && req.headers['if-none-match'] === undefined;
    const isCacheable = isPlain && isAnonymous(req) && !duplicateError(req);
    const cached = statements && isCacheable ? cache.find({ statements }, keyOf(req)) : undefined;
    if (!cached?.rest || !cached.shared) return next();
    const { method, path } = cached.rest;
    Object.assign(res.locals.record, { api: 'rest', endpoint: `${method} ${path}` });
    countCall(dependencies, req, res);
    return sendAgain(res, dependencies.config, cached);
  };
}

// Counts the calls of each client (docs/migrate.md).
function countCall({ calls, now }: Dependencies, { headers }: Request, { locals }: Response): void {
  locals.onClose(() => {
    // Browser pages can set `apollographql-client-name`, but not `User-Agent`.
    const client = headers['apollographql-client-name'] || headers['user-agent'] || '-';
    calls.count(locals.record.endpoint ?? '', String(client), locals.record.user ?? '', now());
  });
}

// Identifies the caller, and rejects callers without access.
function authorize(dependencies: Dependencies, allowed: Route['access']): RequestHandler {
  return async (req, res, next) => {
    const ctx = (res.locals.ctx = new RequestContext(dependencies, req, res.locals));
    const access =
      typeof allowed === 'function' ? allowed(req.body as object | undefined) : allowed;
    if (access !== 'login') await findCaller(ctx, req);
    // Responses to a caller must not be cached for others, and caches do not know session keys.
    if (ctx.caller) res.setHeader('Cache-Control', 'no-store');
    // A logout has no caller at the end, and a login only then.
    if (ctx.caller) res.locals.record.user = ctx.caller.username;
    if (access === 'signed-in') requireCaller(ctx);
    else if (access !== 'public' && access !== 'login') requireScope(ctx, access);
    next();
  };
}

// Reads the input, calls the handler and sends its result.
function answer(cache: ResponseCache, route: Route): RequestHandler {
  const { rowCounts, success, secret } = route;
  return async (req, res) => {
    const { ctx } = res.locals;
    // The client has gone, or the time is up.
    if (!ctx || res.headersSent) return;
    const { grant_type: grantType } = Object(req.body) as { grant_type?: unknown };
    // A parameter without a value counts as absent (RFC 6749, 3.2).
    res.locals.isOauth = route.oauth === true && Boolean(grantType);
    const handle = async () => route.handle(ctx, readInput(route, req));
    if (success.stream) return sendStream(route, ctx, res, handle);
    const make = async (): Promise<CachedResponse> => {
      const result = await handle();
      const body = JSON.stringify(success.body.parse(result));
      return {
        rest: route,
        body,
        ...(success.headers && { headers: success.headers(ctx, result) }),
        ...(rowCounts !== undefined && !ctx.caller && { tag: tagOf(body) }),
      };
    };
    const response = await (rowCounts !== undefined && isAnonymous(req)
      ? cache.getOrMake(ctx, keyOf(req), rowCounts, make)
      : make());
    for (const [name, value] of Object.entries(response.headers ?? {})) res.append(name, value);
    if (secret || success.status !== 200) return sendBody(res, success.status, response.body);
    await sendCompressible(res, ctx.config, response);
    // Of a response in the cache, unless it could not be sent.
    if (response.forms && res.statusCode < 400) response.shared ??= sharedHeaders(res);
  };
}

async function sendStream(
  { success }: Route,
  { config }: Context,
  res: Response,
  handle: () => Promise<unknown>,
): Promise<void> {
  res.setHeader('Cache-Control', 'no-store');
  compressStream(res, config);
  const chunks = Readable.from((await handle()) as AsyncIterable<string>);
  const isHead = res.req.method === 'HEAD';
  // Until the first chunk, an error response is still possible.
  if (!isHead) await once(chunks, 'readable');
  if (res.headersSent) return void chunks.destroy();
  res.status(success.status).setHeader('Content-Type', JSON_TYPE);
  res.flushHeaders();
  // The rest depends on the reader.
  res.locals.exclude();
  if (isHead) return void res.end();
  // Before the pipeline aborts the request.
  chunks.once('error', (error) => res.locals.sendError(error));
  // A slow reader pauses the database read. A disconnected one ends it.
  await pipeline(chunks, res);
}

// Cached responses of the GraphQL API have other keys.
function keyOf({ originalUrl }: Request): string {
  return `GET ${originalUrl}`;
}

function readInput(route: Route, req: Request): Input<object> {
  const { path, query, headers, form, json } = route.input ?? {};
  const search = req.url.slice(req.url.indexOf('?') + 1 || req.url.length);
  return {
    path: path && check(path, req.params, 'path'),
    headers: headers && check(headers, req.headers, 'header'),
    query: query && check(query, withRepeated(new URLSearchParams(search)), 'query'),
    form: form && check(form, req.body ?? {}, 'body'),
    json: json && check(json, req.body ?? {}, 'body'),
  } as Input<object>;
}
