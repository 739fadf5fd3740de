import send from 'send';
import { DAY_MS } from '../core/time.ts';
import type { Coding } from '../http/compression.ts';
import type { Exchange } from '../http/exchange.ts';
import { HttpError } from '../http/http-error.ts';
import { unknownPath } from '../rest/endpoint.ts';

const YEAR_MS = 365 * DAY_MS;

interface File {
  directory: string;
  name: string;
  /** In what coding it is there. */
  coding?: Coding | undefined;
}

/** Sends a file of the directory; `immutable` where its name says what is in it. */
export function sendFile({ directory, name, coding }: File, exchange: Exchange, immutable: boolean): Promise<void> {
  const { req, res } = exchange;
  const out = exchange.handOver();
  if (coding !== undefined) out.setHeader('Content-Encoding', coding);
  return new Promise((done, fail) => {
    const options = { root: directory, maxAge: immutable ? YEAR_MS : DAY_MS, immutable, index: false, acceptRanges: false };
    const file = send(req, `/${name}`, options);
    file.once('error', (error: { status?: number }) => {
      // What was said of the file does not hold for the refusal.
      if (!res.headersSent) for (const header of res.getHeaderNames()) res.removeHeader(header);
      fail(refusalOf(error));
    });
    // Also without a body, and when the reader has gone.
    res.once('close', done);
    file.pipe(out);
  });
}

function refusalOf(error: { status?: number }): unknown {
  if (error.status === 404) return unknownPath();
  return error.status === 412 ? new HttpError(412, 'The file is not the one that was asked for') : error;
}
