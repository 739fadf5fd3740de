import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { requireCaller, requireScope } from '../kit/access.ts';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { Access, Input, Route } from '../kit/route.ts';
import { check } from '../kit/validation.ts';
import { answerError, answerJson, JSON_TYPE } from './answers.ts';
import { readForm, readJson } from './body.ts';
import { identify } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import { searchOf } from './request.ts';
import { contextOf, type Services } from './services.ts';

/** Answers one request by its row: credentials, input, the handler, and what the row says leaves. */
export async function answerRow(services: Services, row: Route, exchange: Exchange): Promise<void> {
  if (row.secret) exchange.set({ 'Cache-Control': 'no-store' });
  try {
    const body = bodyReader(row, exchange);
    const access = typeof row.access === 'function' ? row.access(asObject(await body())) : row.access;
    const ctx = await authorized(services, access, exchange);
    if (row.successor !== undefined) noteLegacyCall(row, ctx);
    const input = await readInput(row, exchange, body);
    const answered = row.handle(ctx, input);
    if (isStream(answered)) await answerStream(exchange, row.success.status, answered);
    else answerBody(exchange, row, ctx, await answered);
  } catch (error) {
    answerError(exchange, error, services.log, {
      row: `${row.method} ${row.path}`,
      errorKey: row.errorKey ?? 'detail',
      inputPart: row.method === 'GET' ? 'query' : 'body',
    });
  }
}

// So that an operator can see who has not moved on yet (docs/decisions.md, "Versions").
function noteLegacyCall({ method, path }: Route, { log, userAgent, caller }: Context): void {
  log.info({ event: 'legacy.call', row: `${method} ${path}`, userAgent, user: caller?.username }, 'a superseded row was called');
}

async function authorized(services: Services, access: Access, exchange: Exchange): Promise<Context> {
  const ctx = contextOf(services, exchange);
  if (access === 'login') return ctx;
  await identify(ctx, exchange.req);
  if (access === 'signed-in') requireCaller(ctx);
  else if (access !== 'public') requireScope(ctx, access);
  return ctx;
}

function bodyReader(row: Route, exchange: Exchange): () => Promise<unknown> {
  const read = row.input?.form ? readForm : readJson;
  let body: Promise<unknown> | undefined;
  return () => (body ??= read(exchange));
}

async function readInput(row: Route, { req, params }: Exchange, body: () => Promise<unknown>): Promise<Input<object>> {
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
  const search = new URLSearchParams(searchOf(req));
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, never>;
  for (const key of new Set(search.keys())) {
    const values = search.getAll(key);
    query[key] = values.length === 1 ? String(values[0]) : values;
  }
  return query;
}

function answerBody(exchange: Exchange, row: Route, ctx: Context, body: unknown): void {
  const { status, body: schema, headers } = row.success;
  if (schema === 'stream') throw new TypeError(`${row.path} is to answer a stream`);
  if (headers) exchange.set(headers(ctx, body));
  answerJson(exchange, status, schema.parse(body));
}

async function answerStream(exchange: Exchange, status: number, pieces: AsyncIterable<string>): Promise<void> {
  const { req, res } = exchange;
  exchange.set({ 'Content-Type': JSON_TYPE });
  if (req.method === 'HEAD') {
    exchange.start(status);
    res.end();
    return;
  }
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  for await (const piece of pieces) {
    if (res.destroyed) return;
    // Not before there is something to send: until then, an error can still be told as one.
    if (!res.headersSent) exchange.start(status);
    // A reader that is slower than the database sets the pace; one that has gone ends the reading.
    if (!res.write(piece)) await once(res, 'drain', { signal: gone.signal }).catch(() => undefined);
    if (res.destroyed) return;
  }
  res.end();
}

function isStream(answered: unknown): answered is AsyncIterable<string> {
  return typeof answered === 'object' && answered !== null && Symbol.asyncIterator in answered;
}

function asObject(body: unknown): object | undefined {
  return typeof body === 'object' && body !== null ? body : undefined;
}

/** The refusal of a path that there is none of. */
export function unknownPath(): DomainError {
  return new DomainError('NOT_FOUND', 'Not found');
}
