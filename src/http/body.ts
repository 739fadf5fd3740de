import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { promisify, TextDecoder } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import express, { type RequestHandler } from 'express';
import { parse } from 'content-type';
import { parseExact } from '../core/exact-json.ts';
import { withRepeated } from '../core/validation.ts';
import { HttpError, errorForStatus } from './http-error.ts';

const utf8 = new TextDecoder();
const windows1252 = new TextDecoder('windows-1252');
const JSON_MEDIA_TYPE = 'application/json';
const MULTIPART = 'multipart/form-data';
const NULL = /^[ \t\r\n]*null[ \t\r\n]*$/;
const REST_LIMIT = 16 * 1024;
const FORM_LIMIT = 4 * 1024;
/** Maximum size of a GraphQL request, in bytes. */
export const GRAPHQL_LIMIT = 100 * 1024;
const MAX_FORM_FIELDS = 10;
/**
 * Encodings of request bodies (RFC 9110, 8.4.1). Others are not supported because a decoder may
 * take memory for a window of megabytes, whatever the size of the body: 16 MB for Brotli.
 */
const DECODERS = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);
const IDENTITY = 'identity';
/** Encodings of requests whose body is encoded. */
const encoded = new WeakMap<IncomingMessage, string>();
/** Maximum size of a body that is discarded instead of closing the connection, in bytes. */
const MAX_DISCARDED = 100 * 1024;
/** Maximum size of an encoded body, in bytes. A body made for it takes 70 µs of CPU time a KB. */
const ENCODED_LIMIT = 16 * 1024;

/** Media type and charset of a body. */
interface Format {
  type: string;
  decoder: TextDecoder;
}

/** Parses a JSON body of at most 16 KB. Where the body is optional, null counts as no body. */
export function jsonBody(isOptional = false): RequestHandler[] {
  return body(REST_LIMIT, [JSON_MEDIA_TYPE], (text) =>
    isOptional && NULL.test(text) ? undefined : parseJson(text),
  );
}

/** Reads the JSON text of a GraphQL request of at most 100 KB, which is parsed later. */
export function graphqlBody(): RequestHandler[] {
  return body(GRAPHQL_LIMIT, [JSON_MEDIA_TYPE], (text) => text);
}

/** Parses a form of at most 4 KB and 10 fields: text or files. */
export function formBody(): RequestHandler[] {
  const types = ['application/x-www-form-urlencoded', MULTIPART];
  return body(FORM_LIMIT, types, async (text, format, { headers }) => {
    const fields = [
      ...(format.type === MULTIPART
        ? await parseMultipart(text, headers['content-type'])
        : parseForm(text, format)),
    ];
    if (fields.length > MAX_FORM_FIELDS) throw errorForStatus(413);
    return withRepeated(fields);
  });
}

/**
 * Parses a JSON object or list. A number that a double would change becomes an InexactNumber.
 * Throws 400 for other texts.
 */
export function parseJson(text: string): unknown {
  if (!/^[ \t\r\n]*[{[]/.test(text)) throw errorForStatus(400);
  try {
    return parseExact(text);
  } catch {
    throw errorForStatus(400);
  }
}

// Sets `req.body` to the parsed text of a body of one of these types. An empty body needs no type
// and is undefined, in any framing.
function body(
  limit: number,
  types: readonly string[],
  parseText: (text: string, format: Format, req: IncomingMessage) => unknown,
): RequestHandler[] {
  return [
    checkBody(limit, types),
    express.raw({ type: () => true, limit }),
    async (req, _res, next) => {
      const received = req.body as Buffer | undefined;
      req.body = undefined;
      if (received && received.length > 0) {
        const coding = encoded.get(req) ?? IDENTITY;
        const format = formatOf(req, types, coding);
        const bytes = await decoded(received, coding, limit);
        if (format.decoder === utf8 && !isUtf8(bytes)) throw errorForStatus(400);
        // TextDecoder removes a byte order mark, which is not part of the text.
        req.body = await parseText(format.decoder.decode(bytes), format, req);
      }
      next();
    },
  ];
}

// Rejects the body before it is received or, if its length is unknown, by its first chunks: the
// parser rejects a body that is too large only after its end, which may never come.
function checkBody(limit: number, types: readonly string[]): RequestHandler {
  return (req, res, next) => {
    const { headers } = req;
    const coding = codingOf(req);
    // We decode the received body: the parser would reject an empty one with an encoding.
    if (coding !== IDENTITY) encoded.set(req, coding);
    delete headers['content-encoding'];
    const max = coding === IDENTITY ? limit : Math.min(limit, ENCODED_LIMIT);
    const isChunked = headers['transfer-encoding'] !== undefined;
    const check = (received: number) => {
      if (received > 0) formatOf(req, types, coding);
      // Node discards the rest of a shorter body, so that the client can read the response.
      const isLast = isChunked || received > MAX_DISCARDED;
      if (received > max) throw errorForStatus(413, isLast ? { Connection: 'close' } : {});
    };
    check(isChunked ? 0 : Number(headers['content-length'] ?? 0));
    let received = 0;
    let isRejected = false;
    if (isChunked)
      req.on('data', ({ length }: Buffer) => {
        received += length;
        if (isRejected || res.headersSent) return;
        try {
          check(received);
        } catch (error) {
          isRejected = true;
          res.locals.sendError(error);
        }
      });
    next();
  };
}

async function decoded(bytes: Buffer, coding: string, limit: number): Promise<Buffer> {
  const decode = DECODERS.get(coding);
  if (!decode) return bytes;
  return decode(bytes, { maxOutputLength: limit }).catch(({ code }: NodeJS.ErrnoException) => {
    throw errorForStatus(code === 'ERR_BUFFER_TOO_LARGE' ? 413 : 400);
  });
}

// Returns the coding of the body (RFC 9110, 8.4.1), where x-gzip is gzip.
function codingOf({ headers }: IncomingMessage): string {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim().replace(/^x-gzip$/, 'gzip'))
    .filter((name) => name !== '' && name !== IDENTITY);
  return codings.join() || IDENTITY;
}

// Returns the media type and the charset. Throws 415 for another type, charset or coding.
function formatOf(req: IncomingMessage, types: readonly string[], coding: string): Format {
  // Names the supported encodings (RFC 9110, 12.5.3).
  if (coding !== IDENTITY && !DECODERS.has(coding))
    throw errorForStatus(415, { 'Accept-Encoding': [...DECODERS.keys()].join(', ') });
  const sent = req.headers['content-type'] ?? '';
  if (types.includes(sent)) return { type: sent, decoder: utf8 };
  const { type, parameters } = parse(sent);
  const decoder = types.includes(type) ? decoderOf(parameters['charset']) : undefined;
  if (decoder) return { type, decoder };
  throw new HttpError(415, `The content type must be ${types.join(' or ')} in UTF-8`);
}

/**
 * Returns the decoder of a charset, by all its labels (Encoding Standard, 4.2): UTF-8, or
 * windows-1252, which is also called ISO-8859-1. Both read ASCII alike, so that another charset
 * cannot be used to bypass a filter.
 */
function decoderOf(charset = ''): TextDecoder | undefined {
  // Some clients quote the label, or leave it out.
  const label = charset.replace(/^'(.*)'$/, '$1') || 'utf-8';
  try {
    const { encoding } = new TextDecoder(label);
    return [utf8, windows1252].find((decoder) => decoder.encoding === encoding);
  } catch {
    return undefined;
  }
}

// The octets of an escape are in the charset of the form.
function parseForm(text: string, { decoder }: Format): URLSearchParams {
  const inUtf8 =
    decoder === utf8
      ? text
      : text.replaceAll(/%[89a-f][\da-f]/gi, (escape) =>
          encodeURIComponent(decoder.decode(Buffer.from(escape.slice(1), 'hex'))),
        );
  // Without the empty field, a question mark at the start would not be read.
  return new URLSearchParams(`&${inUtf8}`);
}

async function parseMultipart(text: string, type = ''): Promise<FormData> {
  const form = new Response(text, { headers: { 'Content-Type': type } });
  return form.formData().catch(() => {
    throw errorForStatus(400);
  });
}
