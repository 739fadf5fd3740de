import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import compression from 'compression';
import type { Response } from 'express';
import Negotiator from 'negotiator';
import type { Config } from '../core/config.ts';
import { counters } from '../core/metrics.ts';
import { exceedsBytes } from '../core/text.ts';
import { appendVary, sendBody } from './responses.ts';

/** A content coding that the server can write (RFC 9110, 8.4.1). */
export type Coding = 'br' | 'gzip';

/** Content codings in order of preference, for clients that accept several equally. */
const PREFERRED: readonly Coding[] = ['br', 'gzip'];
/** Maximum size of a body that is never compressed, in bytes. */
export const MAX_UNCOMPRESSED_BYTES = 1_024;
/** Maximum number of responses that are compressed at once. Each takes memory until it is read. */
export const MAX_CONCURRENT = 16;
/** Memory of a compressed form besides its bytes, in bytes. */
const FORM_OVERHEAD = 200;

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants;
// Measured levels (docs/performance.md). A window of 512 KiB: the default takes several MiB.
const BROTLI = { params: { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 19 } };
const GZIP = { level: 6 };

const compressions = counters(
  'shopfront_compressions_total',
  'Compressed responses by content coding; none: not compressed because of the limit.',
  'coding',
  [...PREFERRED, 'none'],
);
let running = 0;

const compress = compression({
  threshold: 0,
  brotli: BROTLI,
  ...GZIP,
  filter(_req, res: Response) {
    const length = Number(res.getHeader('Content-Length') ?? Infinity);
    if (length <= MAX_UNCOMPRESSED_BYTES || res.statusCode === 304) return false;
    if (res.hasHeader('Content-Encoding')) return false;
    if (running >= MAX_CONCURRENT) {
      compressions.none++;
      return false;
    }
    running++;
    res.locals.onClose(() => {
      running--;
      const coding = res.getHeader('Content-Encoding');
      if (coding === 'br' || coding === 'gzip') compressions[coding]++;
    });
    return true;
  },
});

/**
 * Compresses the response, which holds no credential: a credential together with text that others
 * chose would be revealed by the length. Without `body`, its length is unknown. A body with `forms`
 * is sent by `sendStored`.
 */
export function allowCompression(
  res: Response,
  { compression: isOn }: Config,
  { body, forms }: Partial<Body> = {},
): void {
  if (!isOn || (body !== undefined && !exceedsBytes(body, MAX_UNCOMPRESSED_BYTES))) return;
  res.locals.isCompressible = true;
  appendVary(res, 'Accept-Encoding');
  // The middleware replaces methods of the response, which makes it expensive.
  if (!forms && acceptedCoding(res.req)) compress(res.req, res, () => undefined);
}

/** Returns the best coding that the client accepts, or undefined for none. */
export function acceptedCoding(req: Pick<IncomingMessage, 'headers'>): Coding | undefined {
  if (req.headers['accept-encoding'] === undefined) return undefined;
  const available = [...PREFERRED, 'identity'];
  const [best] = new Negotiator(req).encodings(available, { preferred: PREFERRED });
  return PREFERRED.find((coding) => coding === best);
}

/** A body, with its compressed forms if it is stored. */
export interface Body {
  body: string;
  forms?: CompressedForms;
}

/** Sends a body: its stored compressed form, if it may be compressed and the client accepts one. */
export async function sendStored(
  res: Response,
  { body, forms }: Body,
  type?: string,
): Promise<void> {
  const isStored = forms && res.locals.isCompressible && res.req.method !== 'HEAD';
  const coding = isStored ? acceptedCoding(res.req) : undefined;
  if (!forms || !coding) return sendBody(res, 200, body, type);
  const form = await forms.of(coding);
  if (!res.headersSent) res.setHeader('Content-Encoding', coding);
  sendBody(res, 200, form, type);
}

/** Compressed forms of a text that is sent repeatedly. Each form is made once. */
export class CompressedForms {
  /** Size of the forms that have been made, in bytes. */
  bytes = 0;
  private readonly made = new Map<Coding, Promise<Buffer>>();

  constructor(
    private readonly text: string,
    /** Called when a form has been made. */
    private readonly onGrown: () => void = () => undefined,
  ) {}

  /** Returns the form in this coding. */
  of(coding: Coding): Promise<Buffer> {
    const existing = this.made.get(coding);
    if (existing) return existing;
    const form = this.make(coding);
    this.made.set(coding, form);
    form.catch(() => this.made.delete(coding));
    return form;
  }

  private async make(coding: Coding): Promise<Buffer> {
    compressions[coding]++;
    const made = await (coding === 'br'
      ? promisify(brotliCompress)(this.text, BROTLI)
      : promisify(gzip)(this.text, GZIP));
    // zlib returns a part of a larger buffer, which would stay in memory.
    const form = Buffer.from(new Uint8Array(made).buffer);
    this.bytes += form.length + FORM_OVERHEAD;
    this.onGrown();
    return form;
  }
}
