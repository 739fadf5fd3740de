import { once } from 'node:events';
import type { Request, Response } from 'express';
import { requireCaller, requireScope } from '../kit/access.ts';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { Access, Input, Route } from '../kit/route.ts';
import { check } from '../kit/validation.ts';
import { answerError, answerJson, type Wording } from './answers.ts';
import { readForm, readJson } from './body.ts';
import { identify } from './credentials.ts';
import { searchOf } from './request.ts';
import { contextOf, type Services } from './services.ts';

/** Answers one request by its row: credentials, input, the handler, and what the row says leaves. */
export async function answerRow(services: Services, row: Route, req: Request, res: Response): Promise<void> {
  const log = services.log.child({ requestId: res.get('X-Request-Id'), row: `${row.method} ${row.path}` });
  const wording: Wording = { errorKey: row.errorKey ?? 'detail', inputPart: row.method === 'GET' ? 'query' : 'body' };
  if (row.secret) res.set('Cache-Control', 'no-store');
  try {
    const body = bodyReader(row, req, res);
    const access = typeof row.access === 'function' ? row.access(asObject(await body())) : row.access;
    const ctx = await authorized(services, access, req, res);
    if (row.successor !== undefined) noteLegacyCall(row, ctx);
    const input = await readInput(row, req, body);
    const answered = row.handle(ctx, input);
    if (isStream(answered)) await answerStream(req, res, row.success.status, answered);
    else answerBody(res, row, ctx, await answered);
  } catch (error) {
    answerError(req, res, error, log, wording);
  }
}

// So that an operator can see who has not moved on yet (docs/decisions.md, "Versions").
function noteLegacyCall({ method, path }: Route, { log, userAgent, caller }: Context): void {
  log.info({ event: 'legacy.call', row: `${method} ${path}`, userAgent, user: caller?.username }, 'a superseded row was called');
}

async function authorized(services: Services, access: Access, req: Request, res: Response): Promise<Context> {
  const ctx = contextOf(services, req, String(res.get('X-Request-Id')));
  if (access === 'login') return ctx;
  const caller = await identify(ctx, req);
  const known = caller ? { ...ctx, caller } : ctx;
  if (access === 'signed-in') requireCaller(known);
  else if (access !== 'public') requireScope(known, access);
  return known;
}

function bodyReader(row: Route, req: Request, res: Response): () => Promise<unknown> {
  const read = row.input?.form ? readForm : readJson;
  let body: Promise<unknown> | undefined;
  return () => (body ??= read(req, res));
}

async function readInput(row: Route, req: Request, body: () => Promise<unknown>): Promise<Input<object>> {
  const { path, query, headers, form, json } = row.input ?? {};
  return {
    path: path && check(path, req.params, 'path'),
    headers: headers && check(headers, req.headers, 'header'),
    query: query && check(query, queryOf(req), 'query'),
    form: form && check(form, (await body()) ?? {}, 'body'),
    json: json && check(json, (await body()) ?? {}, 'body'),
  } as Input<object>;
}

// Each parameter as text; one that is given twice as a list, which no schema takes.
function queryOf(req: Request): Record<string, string | string[]> {
  const search = new URLSearchParams(searchOf(req));
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, never>;
  for (const key of new Set(search.keys())) {
    const values = search.getAll(key);
    query[key] = values.length === 1 ? String(values[0]) : values;
  }
  return query;
}

function answerBody(res: Response, row: Route, ctx: Context, body: unknown): void {
  const { status, body: schema, headers } = row.success;
  if (schema === 'stream') throw new TypeError(`${row.path} is to answer a stream`);
  res.set(headers?.(ctx, body) ?? {});
  answerJson(res, status, schema.parse(body));
}

async function answerStream(req: Request, res: Response, status: number, pieces: AsyncIterable<string>): Promise<void> {
  res.status(status).set('Content-Type', 'application/json; charset=utf-8');
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  for await (const piece of pieces) {
    if (res.destroyed) return;
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
