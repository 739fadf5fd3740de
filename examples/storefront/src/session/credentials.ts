import { createStore } from '../ui/store.ts';

/** Tokens of a login or refresh. */
export interface Credentials {
  accessToken: string;
  refreshToken: string;
}

const STORED_AS = 'shopfront.refresh-token';

// The access token is never stored. The refresh token is, because otherwise each reload would sign
// out. It is in sessionStorage, which belongs to one tab and ends with it. localStorage would share
// it among tabs, and a tab that missed a refresh of another would end the session of both. A reload
// during a refresh loses the response; the shop repeats it for some seconds. An injected script
// could read both tokens; the Content-Security-Policy of the page protects against that.
let accessToken: string | undefined;

/** Whether there is a session, as far as this tab knows. */
export const signedIn = createStore(readRefreshToken() !== undefined);

/** The token for requests; undefined after a reload, until the first refresh. */
export function readAccessToken(): string | undefined {
  return accessToken;
}

/** The token for the next refresh, if there is a session. */
export function readRefreshToken(): string | undefined {
  return sessionStorage.getItem(STORED_AS) ?? undefined;
}

/** Stores the credentials of a new or refreshed session. */
export function storeCredentials(credentials: Credentials): void {
  accessToken = credentials.accessToken;
  sessionStorage.setItem(STORED_AS, credentials.refreshToken);
  signedIn.set(true);
}

/** Forgets the credentials. Later requests are anonymous. */
export function dropCredentials(): void {
  accessToken = undefined;
  sessionStorage.removeItem(STORED_AS);
}
