import { randomInt } from 'node:crypto';
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import type { Shop } from './shop.ts';
import { sized } from './sized.ts';

/** How many documents a row gets that takes one: FUZZ_RUNS, or as many as the catalogue says, of which a sample runs each time. */
export const RUNS = Number(process.env['FUZZ_RUNS'] || sized(10_000, 100));
/** What the documents follow from: FUZZ_SEED, or a new one for each full run, or always the same for the sample. */
const SEED = Number(process.env['FUZZ_SEED'] || sized(randomInt(2 ** 31), 1));
/** From so many documents on, how many of them get through does not hang on the seed. */
export const MANY = 1_000;
/** How many requests are under way at a time: fewer than may wait for a hash, which would be 503. */
export const LANES = 8;
/** Without a byte for so long, in ms, a request hangs. */
const HANG_MS = 60_000;
/** For making a failing document smaller. */
const SHRINK_MS = 20_000;

const JSON_TYPES = /^application\/(json|problem\+json|graphql-response\+json); charset=utf-8$/;
/** Stacks, SQL, hashes, and words of drivers and libraries. No generator writes any of it. */
const LEAK =
  /\bat \S+ \(|node_modules|\.[jt]s:\d|\b(select|insert into|update|delete from)\b.*\b(from|values|set|where)\b|postgres|pglite|mikro-orm|piscina|SQLSTATE|ECONNRE|(Zod|Type|Range|Reference|Syntax)Error\b|Cannot read prop|is not a function|\$2[aby]\$/;

/** A request as it goes over the wire. */
export interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string | Buffer;
  /** The text in the body, before it was packed. */
  text?: string;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Sends a shop what was generated, many at a time, over connections that stay open. */
export class Fuzz {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: LANES });

  constructor(private readonly shop: Shop) {
    process.stdout.write(`fuzz seed ${SEED}, up to ${RUNS} documents for each row\n`);
  }

  stop(): void {
    this.agent.destroy();
  }

  /**
   * Tries so many generated values, in lanes of one after another. Fails with the first that has a fault: tried again alone and
   * made smaller by fast-check, as long as it fails alone, too.
   */
  async storm<T>(values: fc.Arbitrary<T>, runs: number, attempt: (value: T, lane: number) => Promise<string | undefined>): Promise<void> {
    const queue = fc.sample(values, { seed: SEED, numRuns: runs }).entries();
    let first: { index: number; value: T; fault: string } | undefined;
    const work = async (lane: number): Promise<void> => {
      for (const [index, value] of queue) {
        const fault = await attempt(value, lane).catch(String);
        if (fault !== undefined) first ??= { index, value, fault };
        if (first) return;
      }
    };
    await Promise.all(Array.from({ length: LANES }, (_, lane) => work(lane)));
    if (first) await this.shrink(values, attempt, first);
    this.refuseLog();
  }

  async ask(asked: Asked): Promise<Reply> {
    return this.send(asked).catch((error: unknown) => {
      // A connection that the server closed at the same moment is nobody's fault; twice, it is.
      if (String(error).includes('ECONNRESET') || String(error).includes('EPIPE')) return this.send(asked);
      throw error;
    });
  }

  private send({ method, path, headers, body }: Asked): Promise<Reply> {
    return new Promise((done, fail) => {
      const length = body !== undefined && !('Transfer-Encoding' in headers) && { 'Content-Length': Buffer.byteLength(body) };
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
        res.on('end', () => done({ status: res.statusCode ?? 0, headers: res.headers, text: Buffer.concat(pieces).toString() }));
      });
      req.on('error', fail).on('timeout', () => req.destroy(new Error(`no answer in ${HANG_MS} ms`)));
      req.end(body);
    });
  }

  // The same seed makes the same values, so that of this number is made again, with the way to smaller ones.
  private async shrink<T>(
    values: fc.Arbitrary<T>,
    attempt: (value: T, lane: number) => Promise<string | undefined>,
    { index, value, fault }: { index: number; value: T; fault: string },
  ): Promise<never> {
    const property = fc.asyncProperty(values, async (smaller) => {
      const found = await attempt(smaller, 0).catch(String);
      if (found !== undefined) throw new Error(found);
    });
    await fc.assert(property, { seed: SEED, path: String(index), numRuns: 1, interruptAfterTimeLimit: SHRINK_MS });
    throw new Error(`seed ${SEED}, document ${index}, among others only: ${fault}\n${fc.stringify(value)}`);
  }

  private refuseLog(): void {
    const bad = this.shop.logged.find((line) => /"level":[56]0\b/.test(line) || LEAK.test(line));
    if (bad !== undefined) throw new Error(`seed ${SEED}: logged ${bad}`);
  }
}

/** The values of a JSON text, with each number as the exact decimal that it writes. */
export function exactly(text: string): any {
  return JSON.parse(text, function exact(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
    return typeof value === 'number' ? decimal(context?.source ?? '') : value;
  });
}

/** The number that the text writes, in the only way to write it so: digits without zeros at their ends, and a power of ten. */
export function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  return short === '' ? '0' : `${sign}${short}e${BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - short.length)}`;
}

/** What is wrong with the answer, whatever the request was. */
export function faultOf({ method }: Asked, { status, headers, text }: Reply): string | undefined {
  if (status >= 500) return `${status} ${text}`;
  if (headers['x-content-type-options'] !== 'nosniff' || headers['access-control-allow-origin'] !== '*')
    return `${status} without the headers`;
  if (LEAK.test(text)) return `${status} shows the inside: ${text}`;
  if (method === 'HEAD' || status === 304 || (method === 'OPTIONS' && status === 200))
    return text === '' ? undefined : `${status} with a body`;
  if (!JSON_TYPES.test(headers['content-type'] ?? '')) return `${status} of type ${headers['content-type']}: ${text}`;
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return `${status} with what is no JSON: ${text}`;
  }
}
