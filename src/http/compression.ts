import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import compression from 'compression';
import type { Request, Response } from 'express';
import type { Config } from '../core/config.ts';
import { exceedsBytes } from '../core/text.ts';
import type { CachedResponse } from './response-cache.ts';
import { appendVary, sendBody, sendIfNotModified } from './responses.ts';

/** Content codings that the server can write (RFC 9110, 8.4.1), the preferred one first. */
const CODINGS = ['br', 'gzip'] as const;
export type Coding = (typeof CODINGS)[number];

/** Maximum size of a body that is never compressed, in bytes. */
export const MAX_UNCOMPRESSED_BYTES = 1_024;

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants;
// Measured levels (docs/performance.md). A window of 512 KiB: the default takes several MiB.
const BROTLI = { params: { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 19 } };

const compress = compression({ threshold: MAX_UNCOMPRESSED_BYTES + 1, brotli: BROTLI });

/**
 * Compresses the response, which holds no credential: a credential together with text that others
 * chose would be revealed by the length. Without `body`, its length is unknown.
 */
export function allowCompression(res: Response, config: Config, body?: string): void {
  if (!isCompressible(config, body)) return;
  appendVary(res, 'Accept-Encoding');
  // The middleware replaces methods of the response, which makes it expensive.
  if (acceptedCoding(res.req)) compress(res.req, res, () => undefined);
}

function isCompressible({ compression: isOn }: Config, body?: string): boolean {
  return isOn && (body === undefined || exceedsBytes(body, MAX_UNCOMPRESSED_BYTES));
}

/** Returns the preferred coding that the client accepts, or undefined for none. */
export function acceptedCoding(req: Request): Coding | undefined {
  if (req.headers['accept-encoding'] === undefined) return undefined;
  return CODINGS.find((coding) => req.acceptsEncodings(coding));
}

/** Sends 304, or the body, compressed for clients that accept it. */
export async function sendCompressible(
  res: Response,
  config: Config,
  { body, forms = new CompressedForms(body), tag }: CachedResponse,
): Promise<void> {
  const isLong = isCompressible(config, body);
  if (isLong) appendVary(res, 'Accept-Encoding');
  if (tag !== undefined && sendIfNotModified(res, config, tag)) return;
  const coding = isLong ? acceptedCoding(res.req) : undefined;
  if (!coding || res.req.method === 'HEAD') return sendBody(res, 200, body);
  const form = await forms.of(coding);
  if (!res.headersSent) res.setHeader('Content-Encoding', coding);
  sendBody(res, 200, form);
}

/** Compressed forms of a text that is sent repeatedly. Each form is made once. */
export class CompressedForms {
  private readonly made = new Map<Coding, Promise<Buffer>>();

  constructor(private readonly text: string) {}

  /** Returns the form in this coding. */
  of(coding: Coding): Promise<Buffer> {
    const existing = this.made.get(coding);
    if (existing) return existing;
    const form =
      coding === 'br' ? promisify(brotliCompress)(this.text, BROTLI) : promisify(gzip)(this.text);
    this.made.set(coding, form);
    return form;
  }
}
