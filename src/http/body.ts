import { promisify, TextDecoder } from 'node:util';
import { parse } from 'content-type';
import express, { type Request, type RequestHandler } from 'express';
import { parseExact } from '../core/exact-json.ts';
import { withRepeated } from '../core/validation.ts';
import { HttpError, errorForStatus } from './http-error.ts';

const JSON_MEDIA_TYPE = 'application/json';
const NULL = /^[ \t\r\n]*null[ \t\r\n]*$/;
const REST_LIMIT = 16 * 1024;
const FORM_LIMIT = 4 * 1024;
/** Maximum size of a GraphQL request, in bytes. */
export const GRAPHQL_LIMIT = 100 * 1024;
/** Maximum size of a compressed body as it is received: the parsers limit the decoded one. */
const ENCODED_LIMIT = 16 * 1024;
const MAX_FORM_FIELDS = 10;
/**
 * Encodings of request bodies (RFC 9110, 8.4.1). Express has others, whose decoders take memory for
 * a window of megabytes, whatever the size of the body.
 */
const CODINGS = new Set(['identity', 'gzip', 'deflate']);
/**
 * Decoders of charsets. Both read ASCII alike, so that another charset cannot be used to bypass a
 * filter. They remove a byte order mark, which is not part of the text.
 */
const DECODERS = [
  new TextDecoder('utf-8', { fatal: true }),
  // Also ISO-8859-1, by the Encoding Standard.
  new TextDecoder('windows-1252'),
];

/** Parses a JSON body of at most 16 KB. Where the body is optional, null counts as no body. */
export function jsonBody(isOptional = false): RequestHandler {
  return body(REST_LIMIT, [JSON_MEDIA_TYPE], (text) =>
    isOptional && NULL.test(text) ? undefined : parseJson(text),
  );
}

/** Reads the JSON text of a GraphQL request of at most 100 KB, which is parsed later. */
export const graphqlBody = body(GRAPHQL_LIMIT, [JSON_MEDIA_TYPE], (text) => text);

/** Parses a form of at most 4 KB and 10 fields: text or files. */
export const formBody = body(
  FORM_LIMIT,
  ['application/x-www-form-urlencoded', 'multipart/form-data'],
  async (text, contentType) => {
    const parsed = new Response(text, { headers: { 'Content-Type': contentType } }).formData();
    const fields = await parsed.then((form) => [...form]).catch(() => undefined);
    if (!fields) throw errorForStatus(400);
    if (fields.length > MAX_FORM_FIELDS) throw errorForStatus(413);
    return withRepeated(fields);
  },
);

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
  parseText: (text: string, contentType: string) => unknown,
): RequestHandler {
  const receive = promisify(express.raw({ type: () => true, limit }));
  return async (req, res, next) => {
    const { 'content-type': type = '' } = req.headers;
    const coding = req.headers['content-encoding']?.toLowerCase() ?? 'identity';
    if (!CODINGS.has(coding)) throw errorForStatus(415);
    const received = receive(req, res);
    await (coding === 'identity' ? received : Promise.race([received, tooLong(req)]));
    const bytes = req.body as Buffer | undefined;
    req.body = bytes?.length ? await parseText(decoded(bytes, type, types), type) : undefined;
    next();
  };
}

// Rejects with 413 when more than ENCODED_LIMIT has arrived.
function tooLong(req: Request): Promise<never> {
  return new Promise((_resolve, reject) => {
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      if ((size += chunk.length) <= ENCODED_LIMIT) return;
      req.unpipe().resume();
      reject(errorForStatus(413));
    });
  });
}

// Throws 415 for a type or charset that is not supported, and 400 for bytes that are not UTF-8.
function decoded(bytes: Buffer, contentType: string, types: readonly string[]): string {
  const { type, parameters } = parse(contentType);
  const decoder = types.includes(type) ? decoderOf(parameters['charset']) : undefined;
  if (!decoder) throw new HttpError(415, `The content type must be ${types.join(' or ')} in UTF-8`);
  try {
    return decoder.decode(bytes);
  } catch {
    throw errorForStatus(400);
  }
}

// Returns the decoder of a charset, by all its labels (Encoding Standard, 4.2).
function decoderOf(label = 'utf-8'): TextDecoder | undefined {
  try {
    const { encoding } = new TextDecoder(label);
    return DECODERS.find((decoder) => decoder.encoding === encoding);
  } catch {
    return undefined;
  }
}
