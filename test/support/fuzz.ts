import { randomInt } from 'node:crypto';
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import type { Shop } from './shop.ts';
import { sized } from './sized.ts';

/**
 * Number of documents per endpoint: FUZZ_RUNS, or the number in the catalogue, or a sample of it.
 */
export const RUNS = Number(process.env['FUZZ_RUNS'] || sized(10_000, 100));
/** Seed of the documents: FUZZ_SEED, or random in full runs, or constant for the sample. */
const SEED = Number(process.env['FUZZ_SEED'] || sized(randomInt(2 ** 31), 1));
/** From this number of documents on, the share of accepted ones does not depend on the seed. */
export const MANY = 1_000;
/** Maximum number of concurrent requests: fewer than the password hash queue has room for. */
const CONCURRENCY = 8;
/** Socket timeout in ms: a longer request hangs. */
const HANG_MS = 60_000;
/** Time limit of shrinking a failing document, in ms. */
const SHRINK_MS = 20_000;

const JSON_TYPES = /^application\/(json|problem\+json|graphql-response\+json); charset=utf-8$/;
/**
 * Stack traces, SQL, hashes, and messages of drivers and libraries. No generator produces any of
 * it.
 */
const LEAK =
  /\bat \S+ \(|node_modules|\.[jt]s:\d|\b(select|insert into|update|delete from)\b.*\b(from|values|set|where)\b|postgres|pglite|mikro-orm|piscina|SQLSTATE|ECONNRE|(Zod|Type|Range|Reference|Syntax)Error\b|Cannot read prop|is not a function|\$2[aby]\$/;

/** A request as it is sent. */
export interface FuzzRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string | Buffer;
  /** The text of the body before compression. */
  text?: string;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Sends generated requests to a shop, concurrently, over persistent connections. */
export class Fuzz {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });

  constructor(private readonly shop: Shop) {
    process.stdout.write(`fuzz seed ${SEED}, up to ${RUNS} documents for each endpoint\n`);
  }

  stop(): void {
    this.agent.destroy();
  }

  /**
   * Tries this number of generated values in several workers. Fails with the first fault:
   * fast-check repeats the value alone and shrinks it while it fails alone, too.
   */
  async attemptAll<T>(
    values: fc.Arbitrary<T>,
    runs: number,
    attempt: (value: T, worker: number) => Promise<string | undefined>,
  ): Promise<void> {
    const queue = fc.sample(values, { seed: SEED, numRuns: runs }).entries();
    let first: { index: number; value: T; fault: string } | undefined;
    const work = async (worker: number): Promise<void> => {
      for (const [index, value] of queue) {
        const fault = await attempt(value, worker).catch(String);
        if (fault !== undefined) first ??= { index, value, fault };
        if (first) return;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, (_, worker) => work(worker)));
    if (first) await this.shrink(values, attempt, first);
    this.checkLog();
  }

  async sendRequest(input: FuzzRequest): Promise<Reply> {
    return this.send(input).catch((error: unknown) => {
      // A keep-alive connection may close at the same moment; a second failure is an error.
      if (String(error).includes('ECONNRESET') || String(error).includes('EPIPE'))
        return this.send(input);
      throw error;
    });
  }

  private send({ method, path, headers, body }: FuzzRequest): Promise<Reply> {
    return new Promise((done, fail) => {
      const length = body !== undefined &&
        !('Transfer-Encoding' in headers) && { 'Content-Length': Buffer.byteLength(body) };
      const target = {
        agent: this.agent,
        host: '127.0.0.1',
        port: this.shop.port,
        method,
        path,
        headers: { ...headers, ...length },
        timeout: HANG_MS,
      };
      const req = request(target, (res) => {
        const pieces: Buffer[] = [];
        res.on('data', (piece: Buffer) => pieces.push(piece)).on('error', fail);
        res.on('end', () =>
          done({
            status: res.statusCode ?? 0,
            headers: res.headers,
            text: Buffer.concat(pieces).toString(),
          }),
        );
      });
      req
        .on('error', fail)
        .on('timeout', () => req.destroy(new Error(`no response within ${HANG_MS} ms`)));
      req.end(body);
    });
  }

  // The same seed and path generate the same value, which can then be shrunk.
  private async shrink<T>(
    values: fc.Arbitrary<T>,
    attempt: (value: T, worker: number) => Promise<string | undefined>,
    { index, value, fault }: { index: number; value: T; fault: string },
  ): Promise<never> {
    const property = fc.asyncProperty(values, async (smaller) => {
      const found = await attempt(smaller, 0).catch(String);
      if (found !== undefined) throw new Error(found);
    });
    await fc.assert(property, {
      seed: SEED,
      path: String(index),
      numRuns: 1,
      interruptAfterTimeLimit: SHRINK_MS,
    });
    throw new Error(
      `seed ${SEED}, document ${index}, only fails among others: ${fault}\n${fc.stringify(value)}`,
    );
  }

  private checkLog(): void {
    const bad = this.shop.logged.find((line) => /"level":[56]0\b/.test(line) || LEAK.test(line));
    if (bad !== undefined) throw new Error(`seed ${SEED}: logged ${bad}`);
  }
}

/** Parses JSON, with each number as its exact decimal. */
export function parseExact(text: string): any {
  return JSON.parse(
    text,
    function exact(
      this: unknown,
      _key: string,
      value: unknown,
      context?: { source?: string },
    ): unknown {
      return typeof value === 'number' ? decimal(context?.source ?? '') : value;
    },
  );
}

/**
 * Returns a number in normal form: digits without leading and trailing zeros, and a power of ten.
 */
export function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  return short === ''
    ? '0'
    : `${sign}${short}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - short.length)}`;
}

/** Returns the fault of a response, independent of the request. */
export function faultOf(
  { method }: FuzzRequest,
  { status, headers, text }: Reply,
): string | undefined {
  if (status >= 500) return `${status} ${text}`;
  if (
    headers['x-content-type-options'] !== 'nosniff' ||
    headers['access-control-allow-origin'] !== '*'
  )
    return `${status} without the headers`;
  if (LEAK.test(text)) return `${status} shows the inside: ${text}`;
  if (method === 'HEAD' || status === 304 || (method === 'OPTIONS' && status === 200))
    return text === '' ? undefined : `${status} with a body`;
  if (!JSON_TYPES.test(headers['content-type'] ?? ''))
    return `${status} of type ${headers['content-type']}: ${text}`;
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return `${status} with what is no JSON: ${text}`;
  }
}
