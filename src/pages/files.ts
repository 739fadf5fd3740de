import type { RequestHandler, Response } from 'express';
import send from 'send';
import { DAY_MS } from '../core/time.ts';
import type { Config } from '../core/config.ts';
import { acceptedCoding, allowCompression, type Coding } from '../http/compression.ts';
import type { Endpoint } from '../http/endpoints.ts';
import { HttpError, unknownPath } from '../http/http-error.ts';
import type { Bundle } from './bundle.ts';

const YEAR_MS = 365 * DAY_MS;

interface File {
  directory: string;
  name: string;
  /** Content coding of the file. */
  coding?: Coding | undefined;
}

/** Returns the endpoint of a page or file. */
export function endpoint(path: string, handler: RequestHandler): Endpoint {
  const errorFormat = { errorKey: 'detail', inputPart: 'query' } as const;
  return { method: 'GET', path, errorFormat, handlers: [handler] };
}

/** Returns the endpoint of the files in `assets/` of a bundle. */
export function assetsEndpoint(
  config: Config,
  { path, directory, assets, compressed }: Bundle,
): Endpoint {
  return endpoint(`${path}/assets/{file}`, async (req, res) => {
    const { file } = req.params;
    // Serves only files that existed at start, so no path can lead to other files.
    if (typeof file !== 'string' || !assets.has(file)) throw unknownPath();
    const isCoded = config.compression && compressed.has(file);
    if (isCoded) allowCompression(res, config);
    const coding = isCoded ? acceptedCoding(req) : undefined;
    await sendFile(
      {
        directory: coding === undefined ? directory : `${directory}/${coding}`,
        name: `assets/${file}`,
        coding,
      },
      res,
      true,
    );
  });
}

/** Sends a file of the directory. `immutable` if its name contains a hash of its content. */
export function sendFile(
  { directory, name, coding }: File,
  res: Response,
  immutable: boolean,
): Promise<void> {
  // The rest depends on the reader.
  res.locals.exclude();
  if (coding !== undefined) res.setHeader('Content-Encoding', coding);
  return new Promise((done, fail) => {
    const options = {
      root: directory,
      maxAge: immutable ? YEAR_MS : DAY_MS,
      immutable,
      index: false,
      acceptRanges: false,
    };
    const file = send(res.req, `/${name}`, options);
    file.once('error', (error: { status?: number }) => fail(responseErrorOf(error)));
    // `close` also fires without a body, and when the client has disconnected.
    res.once('close', done);
    file.pipe(res);
  });
}

function responseErrorOf(error: { status?: number }): unknown {
  if (error.status === 404) return unknownPath();
  return error.status === 412
    ? new HttpError(412, 'The file does not match the precondition')
    : error;
}
