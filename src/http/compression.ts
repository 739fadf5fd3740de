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
import { exceedsBytes } from '../core/text.ts';
import type { Exchange } from './exchange.ts';

/** A content coding that the server can write (RFC 9110, 8.4.1). */
export type Coding = 'br' | 'gzip';

/** Content codings in order of preference, for clients that accept several equally. */
const PREFERRED: readonly Coding[] = ['br', 'gzip'];
const AVAILABLE = [...PREFERRED, 'identity'] as const;
/** Maximum size of a body that is never compressed, in bytes. */
export const MAX_UNCOMPRESSED_BYTES = 1_024;
/**
 * Maximum size of a body that is compressed on the event loop, in bytes. Another thread would block
 * the event loop for as long.
 */
const MAX_SYNC = 32 * 1_024;
/**
 * Maximum number of longer bodies and stream chunks that are compressed at once. They take
 * processor time from requests.
 */
const MAX_CONCURRENT = Math.min(Math.max(availableParallelism() - 1, 1), 4);
/** Maximum number of open compressed streams. Each takes memory until its client has read it. */
export const MAX_STREAMS = 16;
/** Memory of a compressed form besides its bytes, in bytes. */
const FORM_OVERHEAD = 200;
const CHUNK_BYTES = 64 * 1_024;

/** How a body is compressed. */
interface Coder {
  /** Compresses on another thread. */
  compress(plain: Buffer): Promise<Buffer>;
  compressSync(plain: Buffer): Buffer;
  /** Compresses a stream and flushes each chunk at once. */
  stream(): Transform;
}

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } =
  constants;
// A window of 512 KiB: the default takes several MiB for each stream.
const brotli = (quality: number) => ({
  params: { [BROTLI_PARAM_QUALITY]: quality, [BROTLI_PARAM_LGWIN]: 19 },
});
const [promisedGzip, promisedBrotli] = [
  promisify<Buffer, ZlibOptions, Buffer>(gzip),
  promisify<Buffer, BrotliOptions, Buffer>(brotliCompress),
];
// Measured levels (docs/performance.md). Higher levels hardly shorten a list.
const WHOLE = { br: brotli(4), gzip: { level: 6 } };
const STREAMED = { br: brotli(2), gzip: { level: 1 } };
const CODERS: Readonly<Record<Coding, Coder>> = {
  br: {
    compress: (plain) => promisedBrotli(plain, WHOLE.br),
    compressSync: (plain) => brotliCompressSync(plain, WHOLE.br),
    stream: () =>
      createBrotliCompress({
        ...STREAMED.br,
        flush: BROTLI_OPERATION_FLUSH,
        chunkSize: CHUNK_BYTES,
      }),
  },
  gzip: {
    compress: (plain) => promisedGzip(plain, WHOLE.gzip),
    compressSync: (plain) => gzipSync(plain, WHOLE.gzip),
    stream: () => createGzip({ ...STREAMED.gzip, flush: Z_SYNC_FLUSH, chunkSize: CHUNK_BYTES }),
  },
};

const compressions = counters(
  'shopfront_compressions_total',
  'Compressed responses by content coding; none: not compressed because of the limit.',
  'coding',
  [...PREFERRED, 'none'],
);
let running = 0;
let openStreams = 0;

/** Compressed forms of a text that is sent repeatedly. Each form is made once. */
export class CompressedForms {
  /** Size of the forms that have been made, in bytes. */
  bytes = 0;
  private readonly made = new Map<Coding, Promise<Buffer | undefined>>();

  constructor(
    private readonly text: string,
    /** Called when a form has been made. */
    private readonly onGrown: () => void = () => undefined,
  ) {}

  /** Returns the form in this coding, or undefined while too many compressions run. */
  of(coding: Coding): Promise<Buffer | undefined> {
    const existing = this.made.get(coding);
    if (existing) return existing;
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
    // zlib returns a part of a larger buffer, which would stay in memory.
    const form = Buffer.from(new Uint8Array(made).buffer);
    this.bytes += form.length + FORM_OVERHEAD;
    this.onGrown();
    return form;
  }
}

/** A body, with its compressed forms if it is cached. */
export interface Body {
  body: string;
  forms?: CompressedForms;
}

/** `Vary` of a response that may be compressed. */
export const VARY_BY_CODING = { Vary: 'Accept-Encoding' } as const;

/**
 * Returns the content coding of the response, or undefined for none. Sets `Vary` on a response that
 * may be compressed. Without `body`, the response is a stream of unknown length.
 */
export function codingFor(
  exchange: Exchange,
  config: Pick<Config, 'compression'>,
  body?: string,
): Coding | undefined {
  if (!mayBeCompressed(config, body)) return undefined;
  exchange.set(VARY_BY_CODING);
  return acceptedCoding(exchange.req);
}

/** Returns whether a response with this body is compressed for clients that accept it. */
export function mayBeCompressed(
  { compression }: Pick<Config, 'compression'>,
  body?: string,
): boolean {
  return compression && (body === undefined || exceedsBytes(body, MAX_UNCOMPRESSED_BYTES));
}

/** Returns the best coding that the client accepts, or undefined for none. */
export function acceptedCoding(req: Pick<IncomingMessage, 'headers'>): Coding | undefined {
  if (req.headers['accept-encoding'] === undefined) return undefined;
  const [best] = new Negotiator(req).encodings(AVAILABLE, { preferred: PREFERRED });
  return best === 'identity' ? undefined : best;
}

/**
 * Sends the whole response in this coding, or uncompressed while too many compressions run. Sends
 * it synchronously without a coding.
 */
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

async function sendForm(
  exchange: Exchange,
  coding: Coding,
  status: number,
  { body, forms }: Body,
  type: string,
): Promise<void> {
  const form = await (forms ? forms.of(coding) : compressed(body, coding));
  if (form) exchange.send(status, form, type, coding);
  else exchange.send(status, body, type);
}

/**
 * Returns compressed chunks, each flushed at once, or undefined while too many compressions run.
 */
export function compressedChunks(
  chunks: AsyncIterable<string>,
  coding: Coding,
): AsyncIterable<Buffer> | undefined {
  return isBusy(openStreams >= MAX_STREAMS) ? undefined : compressing(chunks, coding);
}

async function* compressing(chunks: AsyncIterable<string>, coding: Coding): AsyncGenerator<Buffer> {
  const coder = CODERS[coding].stream();
  openStreams++;
  running++;
  compressions[coding]++;
  try {
    // An error in one stream ends the other and is thrown to the reader. Chunks are long, so only
    // one is buffered.
    pipeline(Readable.from(chunks, { highWaterMark: 1 }), coder, () => undefined);
    for await (const chunk of coder as AsyncIterable<Buffer>) {
      // Nothing is compressed while the client reads.
      running--;
      try {
        yield chunk;
      } finally {
        running++;
      }
    }
  } finally {
    running--;
    openStreams--;
    coder.destroy();
  }
}

async function compressed(text: string, coding: Coding): Promise<Buffer | undefined> {
  const isLong = exceedsBytes(text, MAX_SYNC);
  if (isLong && isBusy()) return undefined;
  compressions[coding]++;
  const plain = Buffer.from(text);
  if (!isLong) return CODERS[coding].compressSync(plain);
  running++;
  try {
    return await CODERS[coding].compress(plain);
  } finally {
    running--;
  }
}

function isBusy(isFull = false): boolean {
  if (running < MAX_CONCURRENT && !isFull) return false;
  compressions.none++;
  return true;
}
