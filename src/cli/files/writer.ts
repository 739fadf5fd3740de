import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pid } from 'node:process';
import { rename, rm, stat } from 'node:fs/promises';
import type { PipelineOptions } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { DomainError } from '../../core/errors.ts';
import { fileErrorCode } from '../../core/file-error.ts';
import type { CommandContext } from '../command-context.ts';
import { isAbort } from '../interruption.ts';
import { STANDARD } from './reader.ts';

/**
 * Writes text to a file or standard output, optionally compressed by gzip. A file is complete when
 * it appears: until then, it has a temporary name that ends with `.part`. A closed pipe on standard
 * output is no error. Write errors are BAD_USER_INPUT. Ends with an AbortError at the signal.
 */
export async function writeText(
  { stdout }: Pick<CommandContext, 'stdout'>,
  path: string,
  text: AsyncIterable<string>,
  { gzip = false, signal }: { gzip?: boolean; signal?: AbortSignal } = {},
): Promise<void> {
  if (path === STANDARD)
    return pipe(text, stdout, gzip, { end: false, ...(signal && { signal }) }).catch(
      ignoreClosedPipe,
    );
  // Several processes may write to the same file, so the temporary name is unique.
  const part = (await isSpecialFile(path))
    ? path
    : `${path}.${pid}-${randomBytes(4).toString('hex')}.part`;
  let textError: unknown;
  const tracked = async function* () {
    try {
      yield* text;
    } catch (error) {
      textError = error;
      throw error;
    }
  };
  try {
    await pipe(
      tracked(),
      createWriteStream(part, { flags: part === path ? 'w' : 'wx' }),
      gzip,
      signal && { signal },
    );
    if (part !== path) await rename(part, path);
  } catch (error) {
    if (part !== path) await rm(part, { force: true });
    if (error === textError || isAbort(error)) throw error;
    throw new DomainError('BAD_USER_INPUT', `${path} cannot be written (${fileErrorCode(error)})`);
  }
}

function pipe(
  text: AsyncIterable<string>,
  to: NodeJS.WritableStream,
  gzip: boolean,
  options: PipelineOptions = {},
): Promise<void> {
  return gzip ? pipeline(text, createGzip(), to, options) : pipeline(text, to, options);
}

// A device or a pipe is written in place.
async function isSpecialFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats !== undefined && !stats.isFile();
}

function ignoreClosedPipe(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
}
