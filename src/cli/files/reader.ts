import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addAbortSignal, pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../core/errors.ts';
import { fileErrorCode } from '../../core/file-error.ts';
import type { CommandContext } from '../command-context.ts';

/** Path of standard input and standard output. */
export const STANDARD = '-';

/** First bytes of gzip data (RFC 1952, 2.3.1). */
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** Error for invalid gzip data, which a retry cannot read either. */
export class DamagedFile extends DomainError {
  constructor(message: string) {
    super('BAD_USER_INPUT', message);
  }
}

/** The bytes of a file, decompressed if they are gzip. */
export interface FileReader {
  bytes: AsyncIterable<Buffer>;
  /** Returns the fraction read, from 0 to 1; undefined if the size is unknown. */
  fraction(): number | undefined;
}

/**
 * Opens a file or standard input. Read errors are BAD_USER_INPUT, also while reading. Ends with an
 * AbortError at the signal.
 */
export async function openReader(
  context: CommandContext,
  path: string,
  signal: AbortSignal,
): Promise<FileReader> {
  const stats =
    path === STANDARD
      ? undefined
      : await stat(path).catch((error: unknown) => throwReadError(path, error));
  // The size of a pipe or device is meaningless.
  const size = stats?.isFile() ? stats.size : undefined;
  let read = 0;
  const counted = async function* () {
    const file = path === STANDARD ? context.stdin : createReadStream(path);
    for await (const chunk of addAbortSignal(signal, file) as AsyncIterable<Buffer>) {
      read += chunk.length;
      yield chunk;
    }
  };
  return { bytes: withReadErrors(path, gunzipped(counted())), fraction: () => size && read / size };
}

async function* withReadErrors(path: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    throwReadError(path, error);
  }
}

async function* gunzipped(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let head = Buffer.alloc(0);
  while (head.length < GZIP_MAGIC.length) {
    const { value, done } = await bytes.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const whole = async function* () {
    yield head;
    yield* bytes;
  };
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) yield* whole();
  // The reader of the pipeline gets its errors, so the callback ignores them.
  else
    yield* pipeline(
      Readable.from(whole()),
      createGunzip(),
      () => undefined,
    ) as AsyncIterable<Buffer>;
}

function throwReadError(path: string, error: unknown): never {
  const code = fileErrorCode(error);
  if (code === 'ABORT_ERR') throw error;
  const name = path === STANDARD ? 'Standard input' : path;
  if (code === 'Z_BUF_ERROR')
    throw new DamagedFile(`${name} is truncated: its gzip data is incomplete`);
  if (code.startsWith('Z_')) throw new DamagedFile(`${name} is damaged: its gzip data is invalid`);
  throw new DomainError('BAD_USER_INPUT', `${name} cannot be read (${code})`);
}
