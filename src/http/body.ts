import { isUtf8 } from 'node:buffer';
import { parse } from 'content-type';
import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { parseExact } from '../core/exact-json.ts';
import type { Exchange } from './exchange.ts';
import { HttpError, usualError } from './http-error.ts';
import { declaredLength, hasBody } from './request-headers.ts';

const any = () => true;
const REST_LIMIT = 16 * 1024;
/** How large a GraphQL request may be, in bytes. */
export const GRAPHQL_LIMIT = 100 * 1024;
const FORM_LIMIT = 4 * 1024;
/** Maximum length in bytes of a rest of a body that is discarded, and maximum time in ms. */
const DISCARD_LIMIT = 100 * 1024;
const DISCARD_MS = 2_000;
/**
 * A body may come in so many pieces, and in more where they have so many bytes on average: each piece takes memory and time besides
 * its bytes. TCP delivers larger ones, but each chunk of a body (RFC 9112, 7.1) is a piece.
 */
const MAX_PIECES = 1_000;
export const MIN_PIECE_BYTES = 32;
/** Number of bytes of a body, each of which may be a piece, from which on no more is received until it is read. */
const MAX_UNREAD_BYTES = 4 * 1024;
const parsers = {
  text: express.text({ limit: GRAPHQL_LIMIT, type: any, verify }),
  form: express.urlencoded({ limit: FORM_LIMIT, parameterLimit: 10, extended: false, type: any, verify }),
};

/** Bounds what is received of a body while its request is queued. Node's own bound is 64 KB, and each piece takes half a kilobyte besides. */
export function boundUnread(req: IncomingMessage): void {
  if (!hasBody(req)) return;
  const state: unknown = Reflect.get(req, '_readableState');
  // Node has no option for it.
  if (typeof state === 'object' && state !== null) Reflect.set(state, 'highWaterMark', MAX_UNREAD_BYTES);
}

/** Reads a JSON body of at most 16 KB: an object, or undefined where there is none. Throws what `visibleError` knows. */
export async function readJson(exchange: Exchange): Promise<unknown> {
  const text = await readJsonText(exchange, REST_LIMIT);
  return text === undefined ? undefined : parseJson(text);
}

/** Reads the JSON text of a GraphQL request, of at most 100 KB. */
export async function readGraphqlText(exchange: Exchange): Promise<string | undefined> {
  return readJsonText(exchange, GRAPHQL_LIMIT);
}

/** Reads a form of at most 4 KB and 10 fields; a field given twice is a list. */
export async function readForm(exchange: Exchange): Promise<unknown> {
  if (!hasBody(exchange.req)) return undefined;
  requireType(exchange.req, 'application/x-www-form-urlencoded');
  return unpacked(exchange, FORM_LIMIT, parsers.form);
}

/** Returns whether the body may be longer than what is discarded of a body that is not read. */
export function mayBeLong(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined || declaredLength(req) > DISCARD_LIMIT;
}

/**
 * Sends the body of a response, whose head has been written, at once, and ends the response when the rest of the request's body has been
 * discarded. Calls `taken` when the network has taken the response.
 */
export function endAfterBody(req: IncomingMessage, res: ServerResponse, body: string | Buffer, taken?: () => void): void {
  res.flushHeaders();
  res.write(body, (error) => {
    if (!error) taken?.();
  });
  discardBody(req, () => res.end());
}

/**
 * Reads what is left of a request's body and discards it, then calls `done`: at its end, or when it has more than 100 KB or takes more
 * than 2 seconds. A connection that is closed while its client sends is reset, and the client may not read the response.
 */
function discardBody(req: IncomingMessage, done: () => void): void {
  if (req.destroyed || declaredLength(req) > DISCARD_LIMIT) return done();
  const end = () => {
    clearTimeout(timer);
    // The request goes on discarding what is parsed already. Paused, it would keep each piece.
    if (!req.readableEnded) req.socket.pause();
    done();
  };
  const timer = setTimeout(end, DISCARD_MS);
  let received = 0;
  req.on('data', (piece: Buffer) => {
    received += Math.max(piece.length, MIN_PIECE_BYTES);
    if (received > DISCARD_LIMIT) end();
  });
  req.once('end', end);
  req.once('close', end);
}

/** The value of a JSON text, an object or a list. A number that a double would change is an InexactNumber. */
export function parseJson(text: string): unknown {
  if (!/^[ \t\r\n]*[{[]/.test(text)) throw usualError(400);
  try {
    return parseExact(text);
  } catch {
    throw usualError(400);
  }
}

async function readJsonText(exchange: Exchange, limit: number): Promise<string | undefined> {
  const { req } = exchange;
  if (!hasBody(req)) return undefined;
  requireType(req, 'application/json');
  const encoding = req.headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return readPlain(req, limit);
  return String(await unpacked(exchange, limit, parsers.text));
}

// What is sent as it is needs no parser to unpack it.
function readPlain(req: IncomingMessage, limit: number): Promise<string> {
  if (declaredLength(req) > limit) throw usualError(413);
  return new Promise((done, fail) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    refuseMuch(req, limit, (refusal) => {
      req.removeAllListeners('data');
      pieces.length = 0;
      fail(refusal);
    });
    req.once('end', () => {
      const [first] = pieces;
      const bytes = pieces.length === 1 && first ? first : Buffer.concat(pieces);
      // A request whose answer is a stream is kept until its end.
      pieces.length = 0;
      // A mark of the byte order says nothing in UTF-8, and is no part of the text.
      if (isUtf8(bytes)) done(new TextDecoder().decode(bytes));
      else fail(usualError(400));
    });
    req.once('error', () => fail(usualError(400)));
  });
}

// Calls back once when the body has too many bytes or pieces.
function refuseMuch(req: IncomingMessage, limit: number, refuse: (refusal: HttpError) => void): void {
  let [received, count] = [0, 0];
  const look = ({ length }: Buffer) => {
    received += length;
    count++;
    if (received <= limit && (count <= MAX_PIECES || received >= count * MIN_PIECE_BYTES)) return;
    req.off('data', look);
    refuse(usualError(413));
  };
  req.on('data', look);
}

async function unpacked({ req, res }: Exchange, limit: number, parser: RequestHandler): Promise<unknown> {
  if (declaredLength(req) > limit) throw usualError(413);
  await new Promise<void>((done, fail) => {
    // The parsers look at nothing that Node's own request does not have.
    void parser(req as Request, res as Response, (error?: unknown) => (error ? fail(error) : done()));
    // The parsers do not notice that a client leaves in the middle of a compressed body.
    req.once('close', () => {
      if (!req.readableEnded) fail(usualError(400));
    });
    // The parser would first read to the end what it refuses, and there may be none.
    refuseMuch(req, limit, fail);
  });
  const { body } = req as Request;
  Reflect.deleteProperty(req, 'body');
  if (typeof body === 'string' && Buffer.byteLength(body) > limit) throw usualError(413);
  return body as unknown;
}

// The parsers would take other charsets, too; JSON is UTF-8 (RFC 8259, 8.1), and one charset is one way less around a filter.
function requireType(req: IncomingMessage, expected: string): void {
  if (req.headers['content-type'] === expected) return;
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
