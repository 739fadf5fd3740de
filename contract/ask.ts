import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text as textOf } from 'node:stream/consumers';
import { Answer } from './answer.ts';
import { Broken } from './promised.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
/** The name of the kit, by which a deployment can tell it from its clients. */
const USER_AGENT = `shopfront-contract/${version}`;
/** How long a deployment may take for one answer. */
const TIMEOUT_MS = 10_000;
/** How much of an answer is read at most, where not all of it is needed. */
const ENOUGH = 64 * 1024;

/** What is sent beside method and path. */
export interface Asking {
  token?: string | undefined;
  sessionKey?: string | undefined;
  form?: Record<string, string>;
  json?: unknown;
  /** A body as it is. */
  body?: string;
  headers?: Record<string, string>;
}

/** Asks by `fetch`. Where `beginning` is set, reads no more of the answer than is enough to see how it begins. */
export async function ask(base: string, method: string, path: string, asking: Asking = {}, beginning = false): Promise<Answer> {
  const asked = inWords(method, path, asking);
  const { form, json, body } = asking;
  return answering(asked, async () => {
    const answer = await fetch(base + path, {
      method,
      redirect: 'manual',
      headers: headersOf(asking),
      body: form ? new URLSearchParams(form) : json === undefined ? (body ?? null) : JSON.stringify(json),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = beginning ? await beginningOf(answer) : await answer.text();
    return new Answer(asked, answer.status, answer.headers, text);
  });
}

/** Asks by node's own client, for what `fetch` will not send: TRACE, and another `Host`. */
export async function askPlainly(base: string, method: string, path: string, headers: Record<string, string>): Promise<Answer> {
  const asked = inWords(method, path, { headers });
  const url = new URL(base + path);
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const sent = () =>
    new Promise<Answer>((resolve, reject) => {
      const request = send(
        url,
        { method, headers: { 'User-Agent': USER_AGENT, ...headers }, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) },
        (response) => {
          const came = new Headers();
          for (const [name, value] of Object.entries(response.headersDistinct)) came.set(name, (value ?? []).join(', '));
          textOf(response).then((text) => resolve(new Answer(asked, response.statusCode ?? 0, came, text)), reject);
        },
      );
      request.on('error', reject);
      request.end();
    });
  return answering(asked, sent);
}

async function answering(asked: string, work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    throw new Broken(asked, `an answer within ${TIMEOUT_MS / 1000} seconds`, `no answer (${reasonOf(error)})`);
  }
}

// What fetch says is that it failed; why, its cause knows.
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, name } = cause as { code?: unknown; name?: unknown };
  return typeof code === 'string' ? code : String(name);
}

function headersOf({ token, sessionKey, json, headers }: Asking): Record<string, string> {
  return {
    'User-Agent': USER_AGENT,
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(sessionKey !== undefined && { 'X-SESSION-ID': sessionKey }),
    ...(json !== undefined && { 'Content-Type': 'application/json' }),
    ...headers,
  };
}

async function beginningOf(answer: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  // Leaving the loop ends the answer.
  for await (const piece of answer.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length >= ENOUGH) break;
  }
  return text;
}

// Names of credentials only: what they are is nobody's business.
function inWords(method: string, path: string, { token, sessionKey, form, json, body, headers = {} }: Asking): string {
  const given = [
    token !== undefined && 'a bearer token',
    sessionKey !== undefined && 'a session key in X-SESSION-ID',
    ...Object.entries(headers).map(([name, value]) =>
      /^(authorization|x-session)/i.test(name) ? `the header ${name}` : `${name}: ${value}`,
    ),
    form && `a form of ${Object.keys(form).join(', ') || 'nothing'}`,
    json !== undefined && `the JSON ${JSON.stringify(json)}`,
    body !== undefined && `the body ${JSON.stringify(body)}`,
  ].filter((words) => typeof words === 'string');
  return `${method} ${path}${given.length > 0 ? ` with ${given.join(', ')}` : ''}`;
}
