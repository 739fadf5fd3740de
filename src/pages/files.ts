import send from 'send';
import { DAY_MS } from '../core/time.ts';
import type { Config } from '../core/config.ts';
import { codingFor, type Coding } from '../http/compression.ts';
import type { Exchange } from '../http/exchange.ts';
import { HttpError } from '../http/http-error.ts';
import type { Endpoint } from '../http/paths.ts';
import { unknownPath } from '../rest/endpoint.ts';
import type { Bundle } from './bundle.ts';

const YEAR_MS = 365 * DAY_MS;

interface File {
  directory: string;
  name: string;
  /** Content coding of the file. */
  coding?: Coding | undefined;
}

/** Returns the endpoint of a page or file. */
export function endpoint(path: string, handle: Endpoint['handle']): Endpoint {
  return { method: 'GET', path, errorKey: 'detail', handle };
}

/** Returns the endpoint of the files in `assets/` of a bundle. */
export function assetsEndpoint(
  config: Config,
  { path, directory, assets, compressed }: Bundle,
): Endpoint {
  return endpoint(`${path}/assets/{file}`, async (exchange) => {
    const { file = '' } = exchange.params;
    // Serves only files that existed at start, so no path can lead to other files.
    if (!assets.has(file)) throw unknownPath();
    const coding = compressed.has(file) ? codingFor(exchange, config) : undefined;
    await sendFile(
      {
        directory: coding === undefined ? directory : `${directory}/${coding}`,
        name: `assets/${file}`,
        coding,
      },
      exchange,
      true,
    );
  });
}

/** Sends a file of the directory. `immutable` if its name contains a hash of its content. */
export function sendFile(
  { directory, name, coding }: File,
  exchange: Exchange,
  immutable: boolean,
): Promise<void> {
  const { req, res } = exchange;
  const out = exchange.release();
  if (coding !== undefined) out.setHeader('Content-Encoding', coding);
  return new Promise((done, fail) => {
    const options = {
      root: directory,
      maxAge: immutable ? YEAR_MS : DAY_MS,
      immutable,
      index: false,
      acceptRanges: false,
    };
    const file = send(req, `/${name}`, options);
    file.once('error', (error: { status?: number }) => {
      // The headers of the file do not apply to the error.
      if (!res.headersSent) for (const header of res.getHeaderNames()) res.removeHeader(header);
      fail(responseErrorOf(error));
    });
    // `close` also fires without a body, and when the client has disconnected.
    res.once('close', done);
    file.pipe(out);
  });
}

function responseErrorOf(error: { status?: number }): unknown {
  if (error.status === 404) return unknownPath();
  return error.status === 412
    ? new HttpError(412, 'The file does not match the precondition')
    : error;
}
