import { randomBytes } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { isRecord, memberOf, type HttpResponse } from './response.ts';
import { send, sendRaw, type RequestOptions } from './request.ts';
import { Failed, Skipped, type Need } from './promised.ts';
import { Secrets } from './secrets.ts';

/** Credentials of a user. */
export interface Credentials {
  username: string;
  password: string;
}

/** A deployment, and the optional data that its checks need. */
export interface DeploymentOptions {
  /** URL without a slash at the end. */
  baseUrl: string;
  /** Path of the session router below the URL. */
  sessionPrefix: string;
  user?: Credentials | undefined;
  /** A user whose account is disabled; the password may be missing. */
  disabledUser?: { username: string; password?: string | undefined } | undefined;
  /** The secret with which the deployment signs tokens. */
  signingSecret?: string | undefined;
  /** Whether products may be created. */
  write: boolean;
}

/** The claims or header parameters of a token. */
export type Values = Record<string, unknown>;

/** A client of a deployment. `logOutAll` ends every login that it opened. */
export class Deployment {
  readonly secrets = new Secrets();
  /** A username that does not exist. */
  readonly unknownUsername = `nobody-${randomBytes(6).toString('hex')}`;
  /** Number of logins opened. */
  opened = 0;
  /** The pk of each created product, or its barcode if the response has no pk. */
  readonly created = new Set<string>();
  private isInterrupted = false;
  private readonly cache = new Map<string, Promise<unknown>>();
  private readonly openTokens = new Set<string>();
  private readonly openKeys = new Set<string>();

  constructor(readonly options: DeploymentOptions) {
    const { user, disabledUser, signingSecret } = options;
    for (const [secret, variable] of [
      [user?.password, 'CONTRACT_PASSWORD'],
      [disabledUser?.password, 'CONTRACT_DISABLED_PASSWORD'],
      [signingSecret, 'CONTRACT_SIGNING_SECRET'],
      [user && basicCredentials(user), 'BASIC'],
      [disabledUser && basicCredentials(disabledUser), 'BASIC'],
    ] as const) {
      if (secret !== undefined) this.secrets.add(secret, variable);
    }
  }

  has(need: Need): boolean {
    const { user, disabledUser, signingSecret, write } = this.options;
    const available: Record<Need, boolean> = {
      user: user !== undefined,
      'disabled user': disabledUser !== undefined,
      'disabled password': disabledUser?.password !== undefined,
      secret: signingSecret !== undefined,
      write,
    };
    return available[need];
  }

  /** The user who can sign in. */
  get user(): Credentials {
    return this.options.user ?? missing('a user');
  }

  get disabledUser(): Credentials {
    const { username, password = '' } = this.options.disabledUser ?? missing('a disabled user');
    return { username, password };
  }

  /** The path of login or logout of the session router. */
  session(action: 'login' | 'logout'): string {
    return `${this.options.sessionPrefix}/${action}`;
  }

  /** Throws `Failed` if the deployment does not respond. */
  async checkReachable(): Promise<void> {
    await send(this.options.baseUrl, 'GET', '/');
  }

  /** Throws `Skipped` if the user gets neither a token nor a session. */
  async checkLogin(): Promise<void> {
    const logins = await Promise.allSettled([this.token(), this.sessionKey()]);
    const reasons = logins.flatMap((login) => {
      if (login.status === 'fulfilled') return [];
      if (login.reason instanceof Skipped || login.reason instanceof Failed)
        return [login.reason.message];
      throw login.reason;
    });
    if (reasons.length === logins.length) throw new Skipped(reasons.join('; '));
  }

  async send(method: string, path: string, options?: RequestOptions): Promise<HttpResponse> {
    const response = this.registerCredentials(
      skipIfThrottled(await send(this.base(), method, path, options)),
    );
    if (
      method === 'POST' &&
      isRecord(options?.json) &&
      'barcode' in options.json &&
      response.status < 300
    ) {
      this.created.add(String(response.member('pk') ?? options.json['barcode']));
    }
    return response;
  }

  /** Sends a GET and reads only the start of the response, for long lists. */
  async readStart(path: string, options?: RequestOptions): Promise<HttpResponse> {
    return skipIfThrottled(await send(this.base(), 'GET', path, options, true));
  }

  /** Sends what `fetch` cannot send. */
  async sendRaw(
    method: string,
    path: string,
    headers: Record<string, string>,
  ): Promise<HttpResponse> {
    return skipIfThrottled(await sendRaw(this.base(), method, path, headers));
  }

  /** Requests the path of a link at the base URL, whatever host the link has. */
  async followLink(link: string): Promise<HttpResponse> {
    const { baseUrl } = this.options;
    if (!URL.canParse(link, baseUrl)) throw new Failed('the link', 'a URL', link);
    const { pathname, search } = new URL(link, baseUrl);
    const below = baseUrl.slice(new URL(baseUrl).origin.length);
    if (!pathname.startsWith(below))
      throw new Failed(`the link ${link}`, `a URL below ${below}`, pathname);
    return this.send('GET', pathname.slice(below.length) + search);
  }

  /** A token of the user, shared between checks. */
  token(): Promise<string> {
    return this.cached('token', () => this.newToken());
  }

  /** A token of a new login, limited to the scope if one is given. */
  async newToken(scope?: string): Promise<string> {
    const form = { ...this.user, ...(scope !== undefined && { scope }) };
    const statuses: string[] = [];
    for (const path of ['/token', '/login']) {
      const response = await this.send('POST', path, { form });
      const token = response.member('access_token');
      if (typeof token === 'string') return token;
      statuses.push(`POST ${path} returned ${response.status}`);
    }
    throw new Skipped(`no token: ${statuses.join(', ')}`);
  }

  /** A session key of the user, shared between checks. */
  sessionKey(): Promise<string> {
    return this.cached('session key', () => this.newSessionKey());
  }

  /** The key of a new session. */
  async newSessionKey(): Promise<string> {
    const path = this.session('login');
    const response = await this.send('POST', path, { json: this.user });
    const key = response.member('session_key');
    if (typeof key === 'string') return key;
    throw new Skipped(`no session: POST ${path} returned ${response.status}`);
  }

  /** A signed token of the user with changed claims or header parameters; undefined removes one. */
  async forge(claims: Values, header: Values = {}): Promise<string> {
    const secret = this.options.signingSecret ?? missing('the signing secret');
    const issued = await this.token();
    // With a wrong secret, every token would be rejected, for the wrong reason.
    if (!isSignedWith(issued, secret))
      throw new Skipped('the given signing secret does not sign the tokens of this deployment');
    const [issuedHeader, issuedClaims] = partsOf(issued);
    const payload = JSON.stringify({ ...issuedClaims, ...claims });
    const token = jwt.sign(payload, secret, {
      header: { ...issuedHeader, ...header, alg: 'HS256' },
    });
    this.secrets.add(token, 'ALTERED_TOKEN');
    return token;
  }

  /** Calls the function once for each name, and returns its result. */
  cached<T>(name: string, find: () => Promise<T>): Promise<T> {
    const found = (this.cache.get(name) as Promise<T> | undefined) ?? find();
    this.cache.set(name, found);
    return found;
  }

  /** Skips all further requests. */
  interrupt(): void {
    this.isInterrupted = true;
  }

  /** Ends every login. Returns the number of logins that it could not end. */
  async logOutAll(): Promise<number> {
    const ended = [
      ...[...this.openKeys].map((session_key) =>
        this.isEnded('POST', this.session('logout'), { json: { session_key } }),
      ),
      ...[...this.openTokens].map((token) => this.isEnded('POST', '/api/v2/auth/login', { token })),
    ];
    const remaining = (await Promise.all(ended)).filter((isEnded) => !isEnded).length;
    this.openKeys.clear();
    this.openTokens.clear();
    return remaining;
  }

  private base(): string {
    if (this.isInterrupted) throw new Skipped('interrupted');
    return this.options.baseUrl;
  }

  // 401: it has ended already.
  private async isEnded(method: string, path: string, options: RequestOptions): Promise<boolean> {
    try {
      const { status } = await send(this.options.baseUrl, method, path, options);
      return status === 200 || status === 401;
    } catch {
      return false;
    }
  }

  // Every credential in a response is a login to be ended, and may not be printed.
  private registerCredentials(response: HttpResponse): HttpResponse {
    const { body } = response;
    for (const [name, open, variable] of [
      ['access_token', this.openTokens, 'TOKEN'],
      ['session_key', this.openKeys, 'SESSION_KEY'],
      ['refresh_token', undefined, 'REFRESH_TOKEN'],
    ] as const) {
      const credential = memberOf(body, name);
      if (typeof credential !== 'string') continue;
      this.secrets.add(credential, variable);
      if (open) this.opened++;
      open?.add(credential);
    }
    return response;
  }
}

/** The credentials of HTTP Basic (RFC 7617, section 2). */
export function basicCredentials({
  username,
  password = '',
}: {
  username: string;
  password?: string | undefined;
}): string {
  return Buffer.from(`${username}:${password}`).toString('base64');
}

/** Header and claims of a token, unverified; empty if they cannot be decoded. */
export function partsOf(token: string): [header: Values, claims: Values] {
  const [header, claims] = token.split('.').map(decoded);
  return [header ?? {}, claims ?? {}];
}

/** Whether the token is signed with the secret by HS256. */
export function isSignedWith(token: string, secret: string): boolean {
  try {
    jwt.verify(token, secret, {
      algorithms: ['HS256'],
      ignoreExpiration: true,
      ignoreNotBefore: true,
    });
    return true;
  } catch {
    return false;
  }
}

// Throws `Skipped` for 429, which says nothing about the promise.
function skipIfThrottled(response: HttpResponse): HttpResponse {
  if (response.status === 429)
    throw new Skipped(`${response.request.description} returned 429, too many requests`);
  return response;
}

function missing(need: string): never {
  throw new Skipped(`needs ${need}`);
}

function decoded(part: string): Values {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown;
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
