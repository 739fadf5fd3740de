import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inFolder } from './folder.ts';

/** An HTTP request. */
export interface BenchRequest {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** The result of one load. */
export interface Load {
  /** Requests per second. */
  rate: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** Requests without a successful response. */
  failed: number;
  /** Average size of a response in bytes, with its head. */
  bytes: number;
}

const SCRIPT = join(import.meta.dirname, '../../bench/load.lua');
/** Default number of concurrent clients. */
export const CLIENTS = 16;

const run = promisify(execFile);

/** Sends these requests in order and repeatedly, for this number of seconds. */
export async function load(
  port: number,
  requests: readonly BenchRequest[],
  seconds: number,
  clients = CLIENTS,
): Promise<Load> {
  return inFolder(async (folder) => {
    const file = join(folder, 'requests');
    await writeFile(file, Buffer.concat(requests.map(framed)));
    const { stdout } = await run('wrk', [
      '-t1',
      `-c${clients}`,
      `-d${seconds}s`,
      '--timeout',
      '10s',
      '-s',
      SCRIPT,
      `http://127.0.0.1:${port}`,
      '--',
      file,
    ]);
    const [, line] = /^RESULT (.*)$/m.exec(stdout) ?? [];
    const result = JSON.parse(line ?? '{}') as Record<
      'requests' | 'us' | 'bytes' | 'failed' | 'p50' | 'p99',
      number
    >;
    return {
      rate: (result.requests / result.us) * 1e6,
      p50: result.p50 / 1000,
      p99: result.p99 / 1000,
      failed: result.failed,
      bytes: result.bytes / result.requests,
    };
  });
}

/** Sends one request and returns the response. */
export function responseTo(
  port: number,
  { method, path, headers = {}, body }: BenchRequest,
): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body ?? null });
}

/** Sends one request and returns the body. Throws unless the status is a success. */
export async function send(port: number, sent: BenchRequest): Promise<string> {
  const answer = await responseTo(port, sent);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${sent.method} ${sent.path} returned ${answer.status}: ${text}`);
  return text;
}

function framed({ method, path, headers = {}, body }: BenchRequest): Buffer {
  const bytes = Buffer.from(body ?? '');
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body === undefined ? '' : `Content-Length: ${bytes.length}\r\n`;
  const request = Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}${length}\r\n`),
    bytes,
  ]);
  return Buffer.concat([Buffer.from(`${request.length}\n`), request]);
}
