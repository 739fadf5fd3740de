import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addAbortSignal, pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DomainError } from '../../core/errors.ts';
import { refusalOfFile } from '../../core/file-error.ts';
import type { CommandContext } from '../command-context.ts';

/** Stands for standard input, and for standard output. */
export const STANDARD = '-';

/** RFC 1952, 2.3.1. */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** A file that is no good gzip data from some place on, as it will be the next time. */
export class DamagedFile extends DomainError {
  constructor(message: string) {
    super('BAD_USER_INPUT', message);
  }
}

/** The bytes of a file, unpacked where they are gzip. */
export interface FileReader {
  bytes: AsyncIterable<Buffer>;
  /** How much of it has been read, from 0 to 1; undefined where its size is not known. */
  fraction(): number | undefined;
}

/** Opens a file, or standard input. What cannot be read is BAD_USER_INPUT, also while it is read. Ends with an AbortError at the signal. */
export async function openReader(context: CommandContext, path: string, signal: AbortSignal): Promise<FileReader> {
  const found = path === STANDARD ? undefined : await stat(path).catch((error: unknown) => refuse(path, error));
  // Of a pipe or a device, the size says nothing.
  const size = found?.isFile() ? found.size : undefined;
  let read = 0;
  const counted = async function* () {
    const file = path === STANDARD ? context.stdin : createReadStream(path);
    for await (const piece of addAbortSignal(signal, file) as AsyncIterable<Buffer>) {
      read += piece.length;
      yield piece;
    }
  };
  return { bytes: told(path, unpacked(counted())), fraction: () => size && read / size };
}

async function* told(path: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* bytes;
  } catch (error) {
    refuse(path, error);
  }
}

async function* unpacked(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let head = Buffer.alloc(0);
  while (head.length < GZIP.length) {
    const { value, done } = await bytes.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const whole = async function* () {
    yield head;
    yield* bytes;
  };
  if (!head.subarray(0, GZIP.length).equals(GZIP)) yield* whole();
  // Who reads its end hears of what goes wrong.
  else yield* pipeline(Readable.from(whole()), createGunzip(), () => undefined) as AsyncIterable<Buffer>;
}

function refuse(path: string, error: unknown): never {
  const code = refusalOfFile(error);
  if (code === 'ABORT_ERR') throw error;
  const name = path === STANDARD ? 'Standard input' : path;
  if (code === 'Z_BUF_ERROR') throw new DamagedFile(`${name} is cut short: its gzip data has no end`);
  if (code.startsWith('Z_')) throw new DamagedFile(`${name} is damaged: it is no good gzip data`);
  throw new DomainError('BAD_USER_INPUT', `${name} cannot be read (${code})`);
}
