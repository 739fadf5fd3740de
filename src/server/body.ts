import { isUtf8 } from 'node:buffer';
import { parse } from 'content-type';
import type { IncomingMessage } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { isSafeNumber } from 'lossless-json';
import { InexactNumber } from '../kit/inexact-number.ts';
import type { Exchange } from './exchange.ts';
import { HttpError, usualError } from './http-error.ts';
import { hasBody } from './request.ts';

const any = () => true;
const json = (limit: number): BodyKind => ({
  type: 'application/json',
  limit,
  parser: express.json({ limit, type: any, verify, reviver: keepExact }),
});
const restJson = json(16 * 1024);
const graphqlJson = json(100 * 1024);
const form: BodyKind = {
  type: 'application/x-www-form-urlencoded',
  limit: 4 * 1024,
  parser: express.urlencoded({ limit: 4 * 1024, parameterLimit: 10, extended: false, type: any, verify }),
};

interface BodyKind {
  type: string;
  /** Bytes, as sent and as unpacked. */
  limit: number;
  parser: RequestHandler;
}

/** Reads a JSON body of at most 16 KB: an object, or undefined where there is none. Throws what `visibleError` knows. */
export async function readJson(exchange: Exchange): Promise<unknown> {
  return read(exchange, restJson);
}

/** Reads the JSON body of a GraphQL request, of at most 100 KB. */
export async function readGraphqlJson(exchange: Exchange): Promise<unknown> {
  return read(exchange, graphqlJson);
}

/** Reads a form of at most 4 KB and 10 fields; a field given twice is a list. */
export async function readForm(exchange: Exchange): Promise<unknown> {
  return read(exchange, form);
}

async function read({ req, res }: Exchange, { type, limit, parser }: BodyKind): Promise<unknown> {
  if (!hasBody(req)) return undefined;
  requireType(req, type);
  if (Number(req.headers['content-length'] ?? 0) > limit) throw usualError(413);
  await new Promise<void>((done, fail) => {
    // The parsers look at nothing that Node's own request does not have.
    void parser(req as Request, res as Response, (error?: unknown) => (error ? fail(error) : done()));
    // The parser would first read to the end what it refuses, and there may be none.
    let received = 0;
    req.on('data', (piece: Buffer) => {
      received += piece.length;
      if (received > limit) fail(usualError(413));
    });
  });
  return (req as Request).body as unknown;
}

// The parsers would take other charsets, too; JSON is UTF-8 (RFC 8259, 8.1), and one charset is one way less around a filter.
function requireType(req: IncomingMessage, expected: string): void {
  try {
    const { type, parameters } = parse(req.headers['content-type'] ?? '');
    if (type === expected && /^utf-8$/i.test(parameters['charset'] ?? 'utf-8')) return;
  } catch {
    // no content type, or one that cannot be read: refused like a wrong one
  }
  throw new HttpError(415, `The content type has to be ${expected}, in UTF-8`);
}

// The parsers put a replacement character where bytes are no UTF-8; what is stored has to be what was sent.
function verify(_req: unknown, _res: unknown, bytes: Buffer): void {
  if (!isUtf8(bytes)) throw usualError(400);
}

function keepExact(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return isSafeNumber(context.source) ? value : new InexactNumber(context.source);
}
