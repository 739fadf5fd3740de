import type { IncomingMessage } from 'node:http';
import { availableParallelism } from 'node:os';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
  gzipSync,
  type BrotliOptions,
  type ZlibOptions,
} from 'node:zlib';
import Negotiator from 'negotiator';
import type { Config } from '../kit/config.ts';
import { counters } from '../kit/metrics.ts';
import type { Exchange } from './exchange.ts';

/** A content coding that the server can write (RFC 9110, 8.4.1). */
export type Coding = 'br' | 'gzip';

/** Between codings that a client likes alike, the first of these is used. */
const PREFERRED: readonly Coding[] = ['br', 'gzip'];
const AVAILABLE = [...PREFERRED, 'identity'] as const;
/** Longest body that is never compressed, in bytes. */
export const MAX_PLAIN = 1_024;
/** Longest body that is compressed on the event loop, in bytes: to have another thread do it would hold up the loop for as long. */
const MAX_SYNC = 32 * 1_024;
/** Maximum number of longer bodies and pieces of streams that are compressed at once. They take processor time from requests. */
const MAX_AT_ONCE = Math.min(Math.max(availableParallelism() - 1, 1), 4);
/** Maximum number of compressed streams that are open at once. Each takes memory until its client has read it. */
export const MAX_STREAMS = 16;
/** Memory that a stored form takes beside its bytes, in bytes. */
const FORM_OVERHEAD = 200;
const PIECE = 64 * 1_024;

interface Settings {
  gzip: ZlibOptions;
  br: BrotliOptions;
}

// Measured (docs/performance.md). A list is hardly any shorter by more than the least.
const WHOLE = settings(6, 4);
const STREAMED = settings(1, 2);

const compressions = counters(
  'shopfront_compressions_total',
  'Responses compressed, by content coding; none where too many were being compressed.',
  'coding',
  [...PREFERRED, 'none'],
);
const zip = { gzip: promisify<Buffer, ZlibOptions, Buffer>(gzip), br: promisify<Buffer, BrotliOptions, Buffer>(brotliCompress) };
let underWay = 0;
let streams = 0;

/** The compressed forms of a text that many are sent: each is made once. */
export class Forms {
  /** Number of bytes of the forms that have been made. */
  bytes = 0;
  private readonly made = new Map<Coding, Promise<Buffer | undefined>>();

  constructor(
    private readonly text: string,
    /** Called when a form has been made. */
    private readonly grown: () => void = () => undefined,
  ) {}

  /** Returns the form in this coding; undefined while too much else is being compressed. */
  of(coding: Coding): Promise<Buffer | undefined> {
    const before = this.made.get(coding);
    if (before) return before;
    const form = this.make(coding);
    this.made.set(coding, form);
    form.then(
      (made) => made ?? this.made.delete(coding),
      () => this.made.delete(coding),
    );
    return form;
  }

  private async make(coding: Coding): Promise<Buffer | undefined> {
    const made = await compressed(this.text, coding);
    if (!made) return undefined;
    // zlib returns a part of a larger buffer, all of which would stay in memory.
    const form = Buffer.from(new Uint8Array(made).buffer);
    this.bytes += form.length + FORM_OVERHEAD;
    this.grown();
    return form;
  }
}

/** A body, and its compressed forms where they are kept. */
export interface Body {
  body: string;
  forms?: Forms;
}

/**
 * Returns the coding of the response to this request; undefined where it is sent as it is. A response that may be compressed says so in
 * `Vary`. Without a body, it is a stream, whose length nobody knows.
 */
export function codingFor(exchange: Exchange, { compression }: Pick<Config, 'compression'>, body?: string): Coding | undefined {
  if (!compression || (body !== undefined && isShort(body))) return undefined;
  exchange.set({ Vary: 'Accept-Encoding' });
  return acceptedCoding(exchange.req);
}

/** Returns the best of these codings for the client; undefined where it is to be sent none. */
function acceptedCoding(req: Pick<IncomingMessage, 'headers'>): Coding | undefined {
  if (req.headers['accept-encoding'] === undefined) return undefined;
  const [best] = new Negotiator(req).encodings(AVAILABLE, { preferred: PREFERRED });
  return best === 'identity' ? undefined : best;
}

/** Sends the whole response in this coding; as it is, while too much else is being compressed. */
export async function sendCompressed(
  exchange: Exchange,
  coding: Coding | undefined,
  status: number,
  { body, forms }: Body,
  type: string,
): Promise<void> {
  const form = coding && (await (forms ? forms.of(coding) : compressed(body, coding)));
  if (form) exchange.send(status, form, type, coding);
  else exchange.send(status, body, type);
}

/** Returns the pieces compressed, each as soon as it is there; undefined while too much else is being compressed. */
export function compressedPieces(pieces: AsyncIterable<string>, coding: Coding): AsyncIterable<Buffer> | undefined {
  return isBusy(streams >= MAX_STREAMS) ? undefined : compressing(pieces, coding);
}

async function* compressing(pieces: AsyncIterable<string>, coding: Coding): AsyncGenerator<Buffer> {
  const coder =
    coding === 'br'
      ? createBrotliCompress({ ...STREAMED.br, flush: constants.BROTLI_OPERATION_FLUSH, chunkSize: PIECE })
      : createGzip({ ...STREAMED.gzip, flush: constants.Z_SYNC_FLUSH, chunkSize: PIECE });
  streams++;
  underWay++;
  compressions[coding]++;
  try {
    // What goes wrong with either ends the other, and is thrown to who reads. One piece at a time, for each is long.
    pipeline(Readable.from(pieces, { highWaterMark: 1 }), coder, () => undefined);
    for await (const piece of coder as AsyncIterable<Buffer>) {
      // While its client reads, nothing is compressed.
      underWay--;
      try {
        yield piece;
      } finally {
        underWay++;
      }
    }
  } finally {
    underWay--;
    streams--;
    coder.destroy();
  }
}

async function compressed(text: string, coding: Coding): Promise<Buffer | undefined> {
  const isLong = Buffer.byteLength(text) > MAX_SYNC;
  if (isLong && isBusy()) return undefined;
  compressions[coding]++;
  const plain = Buffer.from(text);
  if (!isLong) return coding === 'br' ? brotliCompressSync(plain, WHOLE.br) : gzipSync(plain, WHOLE.gzip);
  underWay++;
  try {
    return await (coding === 'br' ? zip.br(plain, WHOLE.br) : zip.gzip(plain, WHOLE.gzip));
  } finally {
    underWay--;
  }
}

function isBusy(isFull = false): boolean {
  if (underWay < MAX_AT_ONCE && !isFull) return false;
  compressions.none++;
  return true;
}

function settings(level: number, quality: number): Settings {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants;
  // A window of 512 KiB: the default takes several MiB for each stream.
  return { gzip: { level }, br: { params: { [BROTLI_PARAM_QUALITY]: quality, [BROTLI_PARAM_LGWIN]: 19 } } };
}

// In UTF-8, a unit of UTF-16 takes one to three bytes.
function isShort(body: string): boolean {
  return body.length <= MAX_PLAIN && (body.length * 3 <= MAX_PLAIN || Buffer.byteLength(body) <= MAX_PLAIN);
}
