import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pid } from 'node:process';
import { rename, rm, stat } from 'node:fs/promises';
import type { PipelineOptions } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { DomainError } from '../../core/errors.ts';
import { refusalOfFile } from '../../core/file-error.ts';
import type { CommandContext } from '../command-context.ts';
import { isAbort } from '../interruption.ts';
import { STANDARD } from './reader.ts';

/**
 * Writes text to a file or standard output, packed by gzip where `gzip`. A file is there when it is whole: until then it has a name of its own, which
 * ends with `.part`. A reader of standard output that leaves early has what it wanted. What cannot be written is BAD_USER_INPUT. Ends with an
 * AbortError at the signal.
 */
export async function writeText(
  { stdout }: Pick<CommandContext, 'stdout'>,
  path: string,
  text: AsyncIterable<string>,
  { gzip = false, signal }: { gzip?: boolean; signal?: AbortSignal } = {},
): Promise<void> {
  if (path === STANDARD) return pour(text, stdout, gzip, { end: false, ...(signal && { signal }) }).catch(ignoreLeaving);
  // Others may be writing to the same file.
  const part = (await isThere(path)) ? path : `${path}.${pid}-${randomBytes(4).toString('hex')}.part`;
  let ofText: unknown;
  const told = async function* () {
    try {
      yield* text;
    } catch (error) {
      ofText = error;
      throw error;
    }
  };
  try {
    await pour(told(), createWriteStream(part, { flags: part === path ? 'w' : 'wx' }), gzip, signal && { signal });
    if (part !== path) await rename(part, path);
  } catch (error) {
    if (part !== path) await rm(part, { force: true });
    if (error === ofText || isAbort(error)) throw error;
    throw new DomainError('BAD_USER_INPUT', `${path} cannot be written (${refusalOfFile(error)})`);
  }
}

function pour(text: AsyncIterable<string>, to: NodeJS.WritableStream, packed: boolean, options: PipelineOptions = {}): Promise<void> {
  return packed ? pipeline(text, createGzip(), to, options) : pipeline(text, to, options);
}

// A device or a pipe stays what it is.
async function isThere(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !found.isFile();
}

function ignoreLeaving(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
}
