import send from 'send';
import type { Exchange } from '../exchange.ts';
import { HttpError } from '../http-error.ts';
import { unknownPath } from '../rest.ts';

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Sends a file of the directory; `immutable` where its name says what is in it. */
export function sendFile({ directory, name }: { directory: string; name: string }, exchange: Exchange, immutable: boolean): Promise<void> {
  const { req } = exchange;
  return new Promise((done, fail) => {
    const file = send(req, `/${name}`, {
      root: directory,
      maxAge: immutable ? YEAR_MS : DAY_MS,
      immutable,
      index: false,
      acceptRanges: false,
    });
    file.once('error', ({ status }: { status?: number }) => fail(status === 412 ? new HttpError(412, 'It is another one') : unknownPath()));
    file.once('end', done).pipe(exchange.handOver());
  });
}
