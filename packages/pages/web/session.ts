import { clientHeaders } from './client.ts';
import { home } from './settings.ts';

/** The session of this tab. */
export interface Session {
  username: string;
  token: string;
  /** When the access token expires, in ms by the clock of this browser, which need not be right. */
  expiresAt: number;
  /** The next refresh token; each is valid once. */
  refreshToken: string;
}

/** The response of `/token` (RFC 6749, 5.1). */
interface Tokens {
  access_token: string;
  expires_in: number;
  refresh_token: string;
}

/** Called with the session, if any, and with the reason if the server ended the last one. */
type Listener = (session: Session | undefined, ended?: string) => void;

const KEY = `shopfront session ${home}`;
const listeners = new Set<Listener>();
/** Renewals that have begun, by their refresh token, with the next access token. */
const renewals = new Map<string, Promise<string>>();
/** The other tabs: a duplicate of this one has the same refresh token, which is valid once. */
const otherTabs = new BroadcastChannel(KEY);
let ended: string | undefined;

/** A message between tabs. */
interface Renewal {
  /** The refresh token that was used. */
  used: string;
  next: Session;
}

otherTabs.addEventListener('message', ({ data: { used, next } }: MessageEvent<Renewal>) => {
  if (currentSession()?.refreshToken === used) change(next);
});

/** An error response of the server. Its message can be shown. */
class Rejection extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Returns the session of this tab. Its access token may have expired: `freshToken` renews it. */
export function currentSession(): Session | undefined {
  const stored = sessionStorage.getItem(KEY);
  return stored === null ? undefined : (JSON.parse(stored) as Session);
}

/**
 * Calls the listener now, and whenever the session begins, is renewed or ends. Returns a function
 * that removes the listener.
 */
export function watchSession(listener: Listener): () => void {
  listeners.add(listener);
  listener(currentSession(), ended);
  return () => void listeners.delete(listener);
}

/** Ends the session of this tab if the server has ended it. */
export async function checkSession(): Promise<void> {
  const session = currentSession();
  if (!session) return;
  const headers = (token: string | undefined) => ({
    ...clientHeaders,
    Authorization: `Bearer ${token}`,
  });
  const response = await withToken((token) =>
    fetch(`${home}/users/me/`, { headers: headers(token) }),
  ).catch(() => undefined);
  // The user was disabled. A 401 has ended the session already.
  if (response?.status === 400 && currentSession()?.username === session.username)
    change(undefined, 'Your account is disabled.');
}

/**
 * Sends a request with an unexpired access token, if there is a session, and repeats it with a new
 * token if the server rejects the token. Throws if the session has ended, or if another user has
 * signed in meanwhile: the request is never sent without credentials or with those of another user.
 */
export async function withToken(
  send: (token: string | undefined) => Promise<Response>,
  username = currentSession()?.username,
): Promise<Response> {
  const token = await freshToken();
  requireUser(username);
  const response = await send(token);
  if (token === undefined || !rejectsToken(response)) return response;
  const next = await renewed(token);
  requireUser(username);
  return send(next);
}

function requireUser(username: string | undefined): void {
  const current = currentSession()?.username;
  if (current === username) return;
  throw new Error(
    current === undefined
      ? 'You have signed out.'
      : `${current} has signed in meanwhile. Send the request again.`,
  );
}

// A failed login at an endpoint that also accepts tokens has no challenge, and is not repeated.
function rejectsToken({ status, headers }: Response): boolean {
  return status === 401 && headers.has('WWW-Authenticate');
}

/** Returns an unexpired access token; undefined without a session. Throws if renewal fails. */
export async function freshToken(): Promise<string | undefined> {
  const session = currentSession();
  return session && hasExpired(session) ? renewed(session.token) : session?.token;
}

/** Signs in. Throws an error whose message can be shown. */
export async function signIn(username: string, password: string): Promise<void> {
  const session = await requestSession(username, { username, password, scope: 'offline_access' });
  await signOut();
  change(session);
}

/** Signs out, and ends the session on the server. */
export async function signOut(): Promise<void> {
  const session = currentSession();
  if (!session) return;
  change(undefined);
  // If the server cannot be reached, the session expires. This tab has forgotten it in any case.
  await endOnServer(session).catch(() => undefined);
}

async function endOnServer(session: Session): Promise<void> {
  const { token } = hasExpired(session) ? await refreshed(session) : session;
  await fetch(`${home}/api/v2/auth/login`, {
    method: 'POST',
    headers: { ...clientHeaders, Authorization: `Bearer ${token}` },
  });
}

// A refresh token is valid once, so requests at the same time share one refresh.
async function renewed(token: string): Promise<string> {
  const session = currentSession();
  if (!session) throw new Error('You have signed out.');
  if (session.token !== token) return session.token;
  const { refreshToken } = session;
  const renewal =
    renewals.get(refreshToken) ?? renew(session).finally(() => renewals.delete(refreshToken));
  renewals.set(refreshToken, renewal);
  return renewal;
}

async function renew(session: Session): Promise<string> {
  try {
    const next = await refreshed(session);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no target origin
    otherTabs.postMessage({ used: session.refreshToken, next } satisfies Renewal);
    // A session that was ended meanwhile stays ended.
    if (currentSession()?.refreshToken === session.refreshToken) change(next);
    return next.token;
  } catch (error) {
    // If the server was not reached or is overloaded, the session may still be valid.
    if (!(error instanceof Rejection) || error.status >= 500 || error.status === 429) throw error;
    const reason = `The session of ${session.username} has ended. Sign in again.`;
    if (currentSession()?.refreshToken === session.refreshToken) change(undefined, reason);
    throw new Error(reason, { cause: error });
  }
}

function refreshed({ username, refreshToken }: Session): Promise<Session> {
  return requestSession(username, { grant_type: 'refresh_token', refresh_token: refreshToken });
}

async function requestSession(username: string, form: Record<string, string>): Promise<Session> {
  const body = new URLSearchParams(form);
  const response = await fetch(`${home}/token`, {
    method: 'POST',
    headers: clientHeaders,
    body,
  }).catch(() => undefined);
  if (!response) throw new Error('The server cannot be reached.');
  const {
    access_token: token,
    refresh_token: refreshToken,
    expires_in: seconds = 0,
    detail,
  } = await jsonOf(response);
  if (!response.ok || token === undefined || refreshToken === undefined)
    throw new Rejection(rejectionMessage(response, detail), response.status);
  return { username, token, expiresAt: Date.now() + seconds * 1000, refreshToken };
}

async function jsonOf(response: Response): Promise<Partial<Tokens> & { detail?: unknown }> {
  return response.json().catch(() => ({})) as Promise<Partial<Tokens>>;
}

function change(session: Session | undefined, reason?: string): void {
  if (session) sessionStorage.setItem(KEY, JSON.stringify(session));
  else sessionStorage.removeItem(KEY);
  ended = reason;
  for (const listener of listeners) listener(session, reason);
}

function rejectionMessage(response: Response, detail: unknown): string {
  if (response.status === 429) {
    const minutes = Math.ceil(Number(response.headers.get('Retry-After') ?? 60) / 60);
    return `Too many logins have failed. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
  }
  return typeof detail === 'string'
    ? `${detail}.`
    : `The server rejected the login (${response.status}).`;
}

function hasExpired({ expiresAt }: Session): boolean {
  return expiresAt <= Date.now();
}
