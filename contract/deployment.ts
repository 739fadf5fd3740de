import { randomBytes } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { isRecord, memberOf, type Answer } from './answer.ts';
import { ask, askPlainly, type Asking } from './ask.ts';
import { Broken, NotTried, type Need } from './promised.ts';
import { Secrets } from './secrets.ts';

/** Who can sign in. */
export interface Credentials {
  username: string;
  password: string;
}

/** What the owner of a deployment gives for its promises to be tried. */
export interface Given {
  /** Where it stands, without a slash at the end. */
  baseUrl: string;
  /** Where the session router stands below that. */
  sessionPrefix: string;
  user?: Credentials | undefined;
  /** A user whose account is disabled; the password may be missing. */
  disabledUser?: { username: string; password?: string | undefined } | undefined;
  /** What the deployment signs its tokens with. */
  signingSecret?: string | undefined;
  /** Whether products may be created. */
  write: boolean;
}

/** The claims or the header of a token. */
export type Values = Record<string, unknown>;

/** A deployment that is asked as its clients would, and all logins of which are ended by `leave`. */
export class Deployment {
  readonly secrets = new Secrets();
  /** A name that nobody has. */
  readonly nobody = `nobody-${randomBytes(6).toString('hex')}`;
  /** How many logins were opened. */
  opened = 0;
  /** The products that were created, as their pk, or their barcode where that is not told. */
  readonly created = new Set<string>();
  private isInterrupted = false;
  private readonly known = new Map<string, Promise<unknown>>();
  private readonly openTokens = new Set<string>();
  private readonly openKeys = new Set<string>();

  constructor(readonly given: Given) {
    for (const secret of [given.user?.password, given.disabledUser?.password, given.signingSecret]) {
      if (secret !== undefined) this.secrets.add(secret);
    }
  }

  has(need: Need): boolean {
    const { user, disabledUser, signingSecret, write } = this.given;
    const there: Record<Need, boolean> = {
      user: user !== undefined,
      'disabled user': disabledUser !== undefined,
      'disabled password': disabledUser?.password !== undefined,
      secret: signingSecret !== undefined,
      write,
    };
    return there[need];
  }

  /** The user who can sign in. */
  get user(): Credentials {
    return this.given.user ?? missing('a user');
  }

  get disabledUser(): Credentials {
    const { username, password = '' } = this.given.disabledUser ?? missing('a disabled user');
    return { username, password };
  }

  /** The path of the session router's login or logout. */
  session(what: 'login' | 'logout'): string {
    return `${this.given.sessionPrefix}/${what}`;
  }

  /** Throws where nobody answers. */
  async reach(): Promise<void> {
    await ask(this.given.baseUrl, 'GET', '/');
  }

  async ask(method: string, path: string, asking?: Asking): Promise<Answer> {
    const answer = this.note(inTime(await ask(this.base(), method, path, asking)));
    if (method === 'POST' && isRecord(asking?.json) && 'barcode' in asking.json && answer.status < 300) {
      this.created.add(String(answer.member('pk') ?? asking.json['barcode']));
    }
    return answer;
  }

  /** Asks and reads no more than the beginning, which is enough to see what a long list is made of. */
  async askBeginning(path: string, asking?: Asking): Promise<Answer> {
    return inTime(await ask(this.base(), 'GET', path, asking, true));
  }

  /** Asks what `fetch` cannot: see `askPlainly`. */
  async askPlainly(method: string, path: string, headers: Record<string, string>): Promise<Answer> {
    return inTime(await askPlainly(this.base(), method, path, headers));
  }

  /** Asks where a link of an answer leads, here, whatever name the deployment has for itself. */
  async follow(link: string): Promise<Answer> {
    const { baseUrl } = this.given;
    if (!URL.canParse(link, baseUrl)) throw new Broken('the link', 'an address', link);
    const { pathname, search } = new URL(link, baseUrl);
    const below = baseUrl.slice(new URL(baseUrl).origin.length);
    if (!pathname.startsWith(below)) throw new Broken(`the link ${link}`, `an address below ${below}`, pathname);
    return this.ask('GET', pathname.slice(below.length) + search);
  }

  /** A token of the user, the same for all who only need one. */
  token(): Promise<string> {
    return this.once('token', () => this.newToken());
  }

  /** A token of a login of its own, narrowed to a scope where one is named. */
  async newToken(scope?: string): Promise<string> {
    const form = { ...this.user, ...(scope !== undefined && { scope }) };
    for (const path of ['/token', '/login']) {
      const token = (await this.ask('POST', path, { form })).member('access_token');
      if (typeof token === 'string') return token;
    }
    throw new NotTried('there is no token: neither POST /token nor POST /login gave one');
  }

  /** A session key of the user, the same for all who only need one. */
  sessionKey(): Promise<string> {
    return this.once('session key', () => this.newSessionKey());
  }

  /** The key of a session of its own. */
  async newSessionKey(): Promise<string> {
    const key = (await this.ask('POST', this.session('login'), { json: this.user })).member('session_key');
    if (typeof key === 'string') return key;
    throw new NotTried(`there is no session: POST ${this.session('login')} gave no session_key`);
  }

  /** A token as the deployment signs it for the user, with some claims, or members of the header, in the place of its own; an undefined one is left out. */
  async forge(claims: Values, header: Values = {}): Promise<string> {
    const secret = this.given.signingSecret ?? missing('the signing secret');
    const issued = await this.token();
    // With a wrong secret, every refusal would look as if it were for the right reason.
    if (!isSignedWith(issued, secret)) throw new NotTried('the signing secret that was given does not sign this deployment’s tokens');
    const [ownHeader, ownClaims] = partsOf(issued);
    const payload = JSON.stringify({ ...ownClaims, ...claims });
    const token = jwt.sign(payload, secret, { header: { ...ownHeader, ...header, alg: 'HS256' } });
    this.secrets.add(token);
    return token;
  }

  /** What has been found out once under this name. */
  once<T>(name: string, find: () => Promise<T>): Promise<T> {
    const found = (this.known.get(name) as Promise<T> | undefined) ?? find();
    this.known.set(name, found);
    return found;
  }

  /** Asks nothing more, so that what is under way ends soon. */
  interrupt(): void {
    this.isInterrupted = true;
  }

  /** Ends every login, and tells how many could not be ended. */
  async leave(): Promise<number> {
    const ended = [
      ...[...this.openKeys].map((session_key) => this.isEnded('POST', this.session('logout'), { json: { session_key } })),
      ...[...this.openTokens].map((token) => this.isEnded('POST', '/api/v2/auth/login', { token })),
    ];
    const left = (await Promise.all(ended)).filter((isEnded) => !isEnded).length;
    this.openKeys.clear();
    this.openTokens.clear();
    return left;
  }

  private base(): string {
    if (this.isInterrupted) throw new NotTried('interrupted');
    return this.given.baseUrl;
  }

  // What has ended already is refused.
  private async isEnded(method: string, path: string, asking: Asking): Promise<boolean> {
    try {
      const { status } = await ask(this.given.baseUrl, method, path, asking);
      return status === 200 || status === 401;
    } catch {
      return false;
    }
  }

  // Whatever was asked, a credential that came is a login to be ended, and nothing to be printed.
  private note(answer: Answer): Answer {
    const { body } = answer;
    for (const [name, open] of [
      ['access_token', this.openTokens],
      ['session_key', this.openKeys],
      ['refresh_token', undefined],
    ] as const) {
      const credential = memberOf(body, name);
      if (typeof credential !== 'string') continue;
      this.secrets.add(credential);
      if (open) this.opened++;
      open?.add(credential);
    }
    return answer;
  }
}

/** The header and the claims of a token, unverified; empty where they cannot be read. */
export function partsOf(token: string): [header: Values, claims: Values] {
  const [header, claims] = token.split('.').map(decoded);
  return [header ?? {}, claims ?? {}];
}

/** Whether the token is signed with the secret by HS256. */
export function isSignedWith(token: string, secret: string): boolean {
  try {
    jwt.verify(token, secret, { algorithms: ['HS256'], ignoreExpiration: true, ignoreNotBefore: true });
    return true;
  } catch {
    return false;
  }
}

// Who asks too much learns nothing of the promise that was asked about.
function inTime(answer: Answer): Answer {
  if (answer.status === 429) throw new NotTried(`${answer.asked} was answered 429, too many requests`);
  return answer;
}

function missing(what: string): never {
  throw new NotTried(`needs ${what}`);
}

function decoded(part: string): Values {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown;
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
