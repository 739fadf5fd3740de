import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify, TextDecoder } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { parse } from 'content-type';
import pLimit from 'p-limit';
import { parseExact } from '../core/exact-json.ts';
import { withRepeated } from '../core/validation.ts';
import type { Exchange } from './exchange.ts';
import { HttpError, errorForStatus } from './http-error.ts';
import { declaredLength, hasBody } from './request-headers.ts';

const utf8 = new TextDecoder();
const windows1252 = new TextDecoder('windows-1252');
const JSON_MEDIA_TYPE = 'application/json';
const URLENCODED = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data';
const NULL = /^[ \t\r\n]*null[ \t\r\n]*$/;
const REST_LIMIT = 16 * 1024;
/** Maximum size of a GraphQL request, in bytes. */
export const GRAPHQL_LIMIT = 100 * 1024;
const FORM_LIMIT = 4 * 1024;
const MAX_FORM_FIELDS = 10;
/** Maximum size of the rest of a body that is discarded, in bytes, and maximum time, in ms. */
const DISCARD_LIMIT = 100 * 1024;
const DISCARD_MS = 2_000;
/** Time in ms for a client to read the response while its longer body is not received. */
const PAUSE_MS = 500;
/**
 * Maximum number of chunks of a body whose chunks average less than MIN_CHUNK_BYTES. Each chunk
 * takes memory and time besides its bytes. TCP delivers larger chunks, but each chunk of the
 * chunked coding (RFC 9112, 7.1) counts.
 */
export const MAX_CHUNKS = 1_000;
export const MIN_CHUNK_BYTES = 32;
/** Approximate memory of a chunk, and of a name or value of a header, besides its bytes. */
const CHUNK_BYTES = 500;
const TEXT_BYTES = 60;
/** Maximum number of read chunks that are kept apart. */
const MAX_APART = 64;
/** Approximate memory of the objects of a request and its response, in bytes. */
export const REQUEST_BYTES = 2_500;
/** Number of unread bytes of a body after which no more is received. Each may be a chunk. */
const MAX_UNREAD_BYTES = 4 * 1024;
/**
 * The encodings of request bodies (RFC 9110, 8.4.1). Others are not supported because a decoder may
 * have to take memory for a window of megabytes, whatever the size of the body: 16 MB for Brotli.
 */
const DECODERS = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

/** Maximum size of an encoded body, in bytes. A body made for it takes 70 µs of CPU time a KB. */
const ENCODED_LIMIT = 16 * 1024;

/** Limits the decoders that are open at once, of all requests. */
const decoding = pLimit(8);

/**
 * Limits the memory of a body that is not read yet. Node's own limit is 64 KB, after which it still
 * stores the chunks of the last packet.
 */
export function limitUnread(req: IncomingMessage): void {
  if (!hasBody(req)) return;
  readableState(req).highWaterMark = MAX_UNREAD_BYTES;
  const push = req.push.bind(req);
  req.push = (chunk: Buffer | null) => {
    if (chunk === null || !hasTooManyChunks(req.readableLength, unreadChunks(req)))
      return push(chunk);
    // Nothing is missing from a body that is read from its start: its reader rejects it before.
    if (req.readableDidRead) req.socket.destroy();
    return false;
  };
}

/** Returns the approximate memory of an unread request besides REQUEST_BYTES, in bytes. */
export function memoryOf(req: IncomingMessage): number {
  const texts = [req.url ?? '', ...req.rawHeaders, ...req.rawTrailers];
  return texts.reduce(
    (sum, { length }) => sum + length + TEXT_BYTES,
    unreadChunks(req) * CHUNK_BYTES + req.readableLength,
  );
}

/** Returns the number of received chunks of the body that were not read. */
export function unreadChunks(req: IncomingMessage): number {
  const { buffer, bufferIndex } = readableState(req);
  return buffer.length - bufferIndex;
}

function hasTooManyChunks(bytes: number, chunks: number): boolean {
  return chunks > MAX_CHUNKS && bytes < chunks * MIN_CHUNK_BYTES;
}

// Node has no public property for it.
function readableState(req: IncomingMessage) {
  const { _readableState: state } = req as unknown as {
    _readableState: {
      highWaterMark: number;
      readonly buffer: readonly Buffer[];
      readonly bufferIndex: number;
    };
  };
  return state;
}

/**
 * Discards a body as it arrives: one that is not read would be kept as long as the response. Calls
 * `onExcess` once, after 100 KB or too many chunks; by default, closes the connection.
 */
export function discard(
  req: IncomingMessage,
  onExcess: () => void = () => void req.socket.destroy(),
): void {
  limitBody(req, DISCARD_LIMIT, onExcess);
}

/**
 * Returns the value of a JSON body of at most 16 KB. Where the body is optional, null counts as no
 * body. Throws errors that `visibleError` returns.
 */
export async function readJson({ req }: Exchange, isOptional = false): Promise<unknown> {
  const { text } = (await readText(req, [JSON_MEDIA_TYPE], REST_LIMIT)) ?? {};
  if (text === undefined || (isOptional && NULL.test(text))) return undefined;
  return parseJson(text);
}

/** Returns the JSON text of a GraphQL request of at most 100 KB. */
export async function readGraphqlText(exchange: Exchange): Promise<string | undefined> {
  return (await readText(exchange.req, [JSON_MEDIA_TYPE], GRAPHQL_LIMIT))?.text;
}

/** Reads a form of at most 4 KB and 10 fields: text or files. */
export async function readForm({ req }: Exchange): Promise<unknown> {
  const body = await readText(req, [URLENCODED, MULTIPART], FORM_LIMIT);
  if (!body) return undefined;
  const form = body.type === MULTIPART ? await parseMultipart(req, body.text) : parseForm(body);
  const fields = [...form];
  if (fields.length > MAX_FORM_FIELDS) throw errorForStatus(413);
  return withRepeated(fields);
}

/** Returns whether the body may exceed the limit for discarding an unread body. */
export function mayExceedDiscardLimit(req: IncomingMessage): boolean {
  return req.headers['transfer-encoding'] !== undefined || declaredLength(req) > DISCARD_LIMIT;
}

/**
 * Sends a response body at once, after its head was written. Ends the response when the rest of the
 * request body has been discarded. Calls `onSent` when the response has been sent.
 */
export function endAfterBody(
  req: IncomingMessage,
  res: ServerResponse,
  body: string | Buffer,
  onSent?: () => void,
): void {
  res.flushHeaders();
  res.write(body, (error) => {
    if (!error) onSent?.();
  });
  discardBody(req, () => res.end());
}

/**
 * Discards the rest of a request body, then calls `done`: at the end of the body, after 2 seconds, or
 * half a second after 100 KB or too many chunks, when no more is received. Until then the client can
 * read the response: a connection that is closed while its client still sends is reset.
 */
function discardBody(req: IncomingMessage, done: () => void): void {
  if (req.destroyed) return done();
  const end = () => {
    clearTimeout(timer);
    done();
  };
  let timer = setTimeout(end, DISCARD_MS);
  const pause = () => {
    req.pause();
    clearTimeout(timer);
    timer = setTimeout(end, PAUSE_MS);
  };
  req.once('end', end);
  req.once('close', end);
  if (declaredLength(req) > DISCARD_LIMIT) pause();
  else discard(req, pause);
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

/** Media type, charset and decompression of a body. */
interface BodyFormat {
  type: string;
  decoder: TextDecoder;
  decompress:
    ((bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>) | undefined;
}

/** The decoded text of a body, and how it was decoded. */
interface BodyText extends BodyFormat {
  text: string;
}

/**
 * Returns the decoded text of a body of one of these types. The limit is in bytes. Undefined if the
 * body is empty: no type is required then, in any framing.
 */
async function readText(
  req: IncomingMessage,
  types: readonly string[],
  limit: number,
): Promise<BodyText | undefined> {
  if (!hasBody(req)) return undefined;
  const format = formatOf(req, types);
  if (format instanceof HttpError) {
    if (await isEmpty(req)) return undefined;
    throw format;
  }
  const { decompress, decoder } = format;
  const received = await readBytes(req, decompress ? Math.min(limit, ENCODED_LIMIT) : limit);
  if (received.length === 0) return undefined;
  const bytes = decompress
    ? await decoding(async () => {
        if (req.socket.destroyed) throw errorForStatus(400);
        return decompress(received, { maxOutputLength: limit });
      }).catch(rejectEncoded)
    : received;
  if (decoder === utf8 && !isUtf8(bytes)) throw errorForStatus(400);
  // TextDecoder removes a byte order mark, which is not part of the text.
  return { ...format, text: decoder.decode(bytes) };
}

function formatOf(req: IncomingMessage, types: readonly string[]): BodyFormat | HttpError {
  const contentType = contentTypeOf(req, types);
  if (contentType instanceof HttpError) return contentType;
  // RFC 9110, 8.4.1: x-gzip is gzip.
  const [coding, ...others] = (req.headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim().replace(/^x-gzip$/, 'gzip'))
    .filter((name) => name !== '' && name !== 'identity');
  if (coding === undefined) return { ...contentType, decompress: undefined };
  const decompress = DECODERS.get(coding);
  // Names the supported encodings (RFC 9110, 12.5.3).
  return decompress && others.length === 0
    ? { ...contentType, decompress }
    : errorForStatus(415, { 'Accept-Encoding': [...DECODERS.keys()].join(', ') });
}

// A missing or malformed content type is rejected like a wrong one.
function contentTypeOf(
  { headers: { 'content-type': sent = '' } }: IncomingMessage,
  types: readonly string[],
): Pick<BodyFormat, 'type' | 'decoder'> | HttpError {
  if (types.includes(sent)) return { type: sent, decoder: utf8 };
  const { type, parameters } = parse(sent);
  const decoder = types.includes(type) ? decoderOf(parameters['charset']) : undefined;
  return decoder
    ? { type, decoder }
    : new HttpError(415, `The content type must be ${types.join(' or ')} in UTF-8`);
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

// Waits for the first chunk if the length is unknown.
async function isEmpty(req: IncomingMessage): Promise<boolean> {
  if (declaredLength(req) > 0 || req.destroyed) return false;
  return new Promise((done) => {
    limitBody(req, 0, () => done(false));
    req.once('end', () => done(true));
    req.once('error', () => done(false));
  });
}

// The octets of an escape are in the charset of the form.
function parseForm({ text, decoder }: BodyText): URLSearchParams {
  const inUtf8 =
    decoder === utf8
      ? text
      : text.replaceAll(/%[89a-f][\da-f]/gi, (escape) =>
          encodeURIComponent(decoder.decode(Buffer.from(escape.slice(1), 'hex'))),
        );
  // Without the empty field, a question mark at the start would not be read.
  return new URLSearchParams(`&${inUtf8}`);
}

async function parseMultipart({ headers }: IncomingMessage, text: string): Promise<FormData> {
  const form = new Response(text, { headers: { 'Content-Type': headers['content-type'] ?? '' } });
  return form.formData().catch(() => {
    throw errorForStatus(400);
  });
}

function rejectEncoded({ code }: NodeJS.ErrnoException): never {
  throw errorForStatus(code === 'ERR_BUFFER_TOO_LARGE' ? 413 : 400);
}

function readBytes(req: IncomingMessage, limit: number): Promise<Buffer> {
  if (declaredLength(req) > limit) throw errorForStatus(413);
  // Its stream has emitted its last event.
  if (req.destroyed) throw errorForStatus(400);
  return new Promise((done, fail) => {
    const chunks: Buffer[] = [];
    limitBody(
      req,
      limit,
      (error) => {
        chunks.length = 0;
        fail(error);
      },
      (chunk) => {
        if (chunks.push(chunk) >= MAX_APART) chunks.splice(0, MAX_APART, Buffer.concat(chunks));
      },
    );
    req.once('end', () => {
      const [first] = chunks;
      const bytes = chunks.length === 1 && first ? first : Buffer.concat(chunks);
      // A streamed response keeps its request in memory until its end.
      chunks.length = 0;
      done(bytes);
    });
    req.once('error', () => fail(errorForStatus(400)));
  });
}

// Calls `reject` once if the body has too many bytes or chunks, and `accept` with each chunk before.
function limitBody(
  req: IncomingMessage,
  limit: number,
  reject: (error: HttpError) => void,
  accept?: (chunk: Buffer) => void,
): void {
  let [received, count] = [0, 0];
  const check = (chunk: Buffer) => {
    received += chunk.length;
    count++;
    if (received <= limit && !hasTooManyChunks(received, count)) return accept?.(chunk);
    req.off('data', check);
    reject(errorForStatus(413));
  };
  req.on('data', check);
}
