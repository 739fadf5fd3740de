import { home } from './settings.ts';

/** Who is signed in on this tab. */
export interface Session {
  username: string;
  token: string;
}

const KEY = `shopfront session ${home}`;
const listeners = new Set<(session: Session | undefined) => void>();

/** The session of this tab, unless its token has expired. */
export function currentSession(): Session | undefined {
  const kept = sessionStorage.getItem(KEY);
  if (kept === null) return undefined;
  const session = JSON.parse(kept) as Session;
  return expiryOf(session.token) > Date.now() ? session : undefined;
}

/** Calls the listener now, and whenever somebody signs in or out. */
export function watchSession(listener: (session: Session | undefined) => void): void {
  listeners.add(listener);
  listener(currentSession());
}

/** Forgets a session that has ended meanwhile, before anything is asked with it. */
export async function checkSession(): Promise<void> {
  const session = currentSession();
  if (!session) return;
  const answer = await fetch(`${home}/users/me/`, { headers: { Authorization: `Bearer ${session.token}` } }).catch(() => undefined);
  if (answer && answer.status >= 400 && answer.status < 500) change(undefined);
}

/** Signs in. Throws an error whose message can be shown. */
export async function signIn(username: string, password: string): Promise<void> {
  const answer = await fetch(`${home}/token`, { method: 'POST', body: new URLSearchParams({ username, password }) }).catch(() => undefined);
  if (!answer) throw new Error('The server cannot be reached.');
  const body = (await answer.json().catch(() => ({}))) as { access_token?: string; detail?: unknown };
  if (!answer.ok || body.access_token === undefined) throw new Error(refusal(answer, body.detail));
  await signOut();
  change({ username, token: body.access_token });
}

/** Signs out, and ends the session on the server. */
export async function signOut(): Promise<void> {
  const session = currentSession();
  change(undefined);
  if (!session) return;
  // Where it cannot be ended it ends by itself; here it is forgotten in any case.
  await fetch(`${home}/api/v2/auth/login`, { method: 'POST', headers: { Authorization: `Bearer ${session.token}` } }).catch(
    () => undefined,
  );
}

function change(session: Session | undefined): void {
  if (session) sessionStorage.setItem(KEY, JSON.stringify(session));
  else sessionStorage.removeItem(KEY);
  for (const listener of listeners) listener(session);
}

function refusal(answer: Response, detail: unknown): string {
  if (answer.status === 429) {
    const minutes = Math.ceil(Number(answer.headers.get('Retry-After') ?? 60) / 60);
    return `Too many logins have failed. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
  }
  return typeof detail === 'string' ? `${detail}.` : `The server refused the login (${answer.status}).`;
}

// The claims of a token stand in its second part (RFC 7519, 3).
function expiryOf(token: string): number {
  const [, claims = ''] = token.split('.');
  const { exp = 0 } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { exp?: number };
  return exp * 1000;
}
