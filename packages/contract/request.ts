import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text as textOf } from 'node:stream/consumers';
import { HttpResponse } from './response.ts';
import { Failed } from './promised.ts';

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string };
/** Names the kit, so that a deployment can tell its requests from those of clients. */
const USER_AGENT = `shopfront-contract/${version}`;
/** Maximum time for one response, in ms. */
const TIMEOUT_MS = 10_000;
/** Maximum length that is read of a response whose start is enough, in characters. */
const MAX_START_LENGTH = 64 * 1024;

/** The parts of a request besides method and path. */
export interface RequestOptions {
  token?: string | undefined;
  sessionKey?: string | undefined;
  form?: Record<string, string>;
  json?: unknown;
  /** A body that is sent unchanged. */
  body?: string;
  headers?: Record<string, string>;
}

/** A request as it was sent. */
export class SentRequest {
  /** The request in words, with the names of credentials but not their values. */
  readonly description: string;

  constructor(
    readonly base: string,
    readonly method: string,
    readonly path: string,
    readonly options: RequestOptions,
  ) {
    this.description = describe(method, path, options);
  }
}

/** Sends a request with `fetch`. With `startOnly`, reads only the start of the response. */
export async function send(
  base: string,
  method: string,
  path: string,
  options: RequestOptions = {},
  startOnly = false,
): Promise<HttpResponse> {
  const request = new SentRequest(base, method, path, options);
  const { form, json, body } = options;
  return failingWithoutResponse(request, async () => {
    const response = await fetch(base + path, {
      method,
      redirect: 'manual',
      headers: headersOf(options),
      body: form
        ? new URLSearchParams(form)
        : json === undefined
          ? (body ?? null)
          : JSON.stringify(json),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = startOnly ? await startOf(response) : await response.text();
    return new HttpResponse(request, response.status, response.headers, text);
  });
}

/** Sends with the client of Node what `fetch` cannot send: TRACE, and another `Host`. */
export async function sendRaw(
  base: string,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<HttpResponse> {
  const request = new SentRequest(base, method, path, { headers });
  const url = new URL(base + path);
  const requestBy = url.protocol === 'https:' ? requestHttps : requestHttp;
  const attempt = () =>
    new Promise<HttpResponse>((resolve, reject) => {
      const clientRequest = requestBy(
        url,
        {
          method,
          headers: { 'User-Agent': USER_AGENT, ...headers },
          agent: false,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        },
        (response) => {
          const received = new Headers();
          for (const [name, value] of Object.entries(response.headersDistinct))
            received.set(name, (value ?? []).join(', '));
          textOf(response).then(
            (text) => resolve(new HttpResponse(request, response.statusCode ?? 0, received, text)),
            reject,
          );
        },
      );
      clientRequest.on('error', reject);
      clientRequest.end();
    });
  return failingWithoutResponse(request, attempt);
}

async function failingWithoutResponse(
  request: SentRequest,
  attempt: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  try {
    return await attempt();
  } catch (error) {
    throw new Failed(
      request,
      `a response within ${TIMEOUT_MS / 1000} seconds`,
      `no response (${reasonOf(error)})`,
    );
  }
}

// The message of fetch is generic; its cause has the reason.
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, name } = cause as { code?: unknown; name?: unknown };
  return typeof code === 'string' ? code : String(name);
}

/** The headers of a request. */
export function headersOf({
  token,
  sessionKey,
  json,
  headers,
}: RequestOptions): Record<string, string> {
  return {
    'User-Agent': USER_AGENT,
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(sessionKey !== undefined && { 'X-SESSION-ID': sessionKey }),
    ...(json !== undefined && { 'Content-Type': 'application/json' }),
    ...headers,
  };
}

async function startOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  // Leaving the loop cancels the response.
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length >= MAX_START_LENGTH) break;
  }
  return text;
}

// Describes a request, with the names of credentials but not their values.
function describe(
  method: string,
  path: string,
  { token, sessionKey, form, json, body, headers = {} }: RequestOptions,
): string {
  const parts = [
    token !== undefined && 'a bearer token',
    sessionKey !== undefined && 'a session key in X-SESSION-ID',
    ...Object.entries(headers).map(([name, value]) =>
      /^(authorization|x-session)/i.test(name) ? `the header ${name}` : `${name}: ${value}`,
    ),
    form && `a form of ${Object.keys(form).join(', ') || 'nothing'}`,
    json !== undefined && `the JSON ${JSON.stringify(json)}`,
    body !== undefined && `the body ${JSON.stringify(body)}`,
  ].filter((part) => typeof part === 'string');
  return `${method} ${path}${parts.length > 0 ? ` with ${parts.join(', ')}` : ''}`;
}
