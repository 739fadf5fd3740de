import type { IncomingMessage } from 'node:http';
import { availableParallelism } from 'node:os';
import { pipeline, Readable, type Transform } from 'node:stream';
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
import type { Config } from '../core/config.ts';
import { counters } from '../core/metrics.ts';
import { isLonger } from '../core/text.ts';
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

/** How a body is compressed. */
interface Coder {
  /** On another thread. */
  compress(plain: Buffer): Promise<Buffer>;
  compressSync(plain: Buffer): Buffer;
  /** Compresses a stream, each piece as soon as it is there. */
  stream(): Transform;
}

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = constants;
// A window of 512 KiB: the default takes several MiB for each stream.
const brotli = (quality: number) => ({ params: { [BROTLI_PARAM_QUALITY]: quality, [BROTLI_PARAM_LGWIN]: 19 } });
const [promisedGzip, promisedBrotli] = [
  promisify<Buffer, ZlibOptions, Buffer>(gzip),
  promisify<Buffer, BrotliOptions, Buffer>(brotliCompress),
];
// The levels are measured (docs/performance.md). A list is hardly any shorter by more than the least.
const WHOLE = { br: brotli(4), gzip: { level: 6 } };
const STREAMED = { br: brotli(2), gzip: { level: 1 } };
const CODERS: Readonly<Record<Coding, Coder>> = {
  br: {
    compress: (plain) => promisedBrotli(plain, WHOLE.br),
    compressSync: (plain) => brotliCompressSync(plain, WHOLE.br),
    stream: () => createBrotliCompress({ ...STREAMED.br, flush: BROTLI_OPERATION_FLUSH, chunkSize: PIECE }),
  },
  gzip: {
    compress: (plain) => promisedGzip(plain, WHOLE.gzip),
    compressSync: (plain) => gzipSync(plain, WHOLE.gzip),
    stream: () => createGzip({ ...STREAMED.gzip, flush: Z_SYNC_FLUSH, chunkSize: PIECE }),
  },
};

const compressions = counters(
  'shopfront_compressions_total',
  'Responses compressed, by content coding; none where too many were being compressed.',
  'coding',
  [...PREFERRED, 'none'],
);
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

/** `Vary` of a response that may be compressed. */
export const VARY_BY_CODING = { Vary: 'Accept-Encoding' } as const;

/**
 * Returns the coding of the response to this request; undefined where it is sent as it is. A response that may be compressed says so in
 * `Vary`. Without a body, it is a stream, whose length nobody knows.
 */
export function codingFor(exchange: Exchange, config: Pick<Config, 'compression'>, body?: string): Coding | undefined {
  if (!mayBeCompressed(config, body)) return undefined;
  exchange.set(VARY_BY_CODING);
  return acceptedCoding(exchange.req);
}

/** Returns whether a response with this body is compressed for clients that accept it. */
export function mayBeCompressed({ compression }: Pick<Config, 'compression'>, body?: string): boolean {
  return compression && (body === undefined || isLonger(body, MAX_PLAIN));
}

/** Returns the best of our codings for the client; undefined where it is to be sent none. */
export function acceptedCoding(req: Pick<IncomingMessage, 'headers'>): Coding | undefined {
  if (req.headers['accept-encoding'] === undefined) return undefined;
  const [best] = new Negotiator(req).encodings(AVAILABLE, { preferred: PREFERRED });
  return best === 'identity' ? undefined : best;
}

/** Sends the whole response in this coding; as it is, while too much else is being compressed. Without a coding it is sent at once. */
export function sendCompressed(
  exchange: Exchange,
  coding: Coding | undefined,
  status: number,
  body: Body,
  type: string,
): Promise<void> | undefined {
  if (coding !== undefined) return sendForm(exchange, coding, status, body, type);
  exchange.send(status, body.body, type);
  return undefined;
}

async function sendForm(exchange: Exchange, coding: Coding, status: number, { body, forms }: Body, type: string): Promise<void> {
  const form = await (forms ? forms.of(coding) : compressed(body, coding));
  if (form) exchange.send(status, form, type, coding);
  else exchange.send(status, body, type);
}

/** Returns the pieces compressed, each as soon as it is there; undefined while too much else is being compressed. */
export function compressedPieces(pieces: AsyncIterable<string>, coding: Coding): AsyncIterable<Buffer> | undefined {
  return isBusy(streams >= MAX_STREAMS) ? undefined : compressing(pieces, coding);
}

async function* compressing(pieces: AsyncIterable<string>, coding: Coding): AsyncGenerator<Buffer> {
  const coder = CODERS[coding].stream();
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
  const isLong = isLonger(text, MAX_SYNC);
  if (isLong && isBusy()) return undefined;
  compressions[coding]++;
  const plain = Buffer.from(text);
  if (!isLong) return CODERS[coding].compressSync(plain);
  underWay++;
  try {
    return await CODERS[coding].compress(plain);
  } finally {
    underWay--;
  }
}

function isBusy(isFull = false): boolean {
  if (underWay < MAX_AT_ONCE && !isFull) return false;
  compressions.none++;
  return true;
}
