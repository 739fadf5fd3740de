import { createStore } from '../ui/store.ts';

/** What a login or a refresh gives out. */
export interface Credentials {
  accessToken: string;
  refreshToken: string;
}

const STORED_AS = 'shopfront.refresh-token';

// The access token opens everything, so it is never stored. The refresh token is, or each reload would sign out: in sessionStorage, which
// belongs to one tab and ends with it. localStorage would share it among tabs, and a tab that missed a refresh of another would end the
// session of both. A reload during a refresh loses the response; the shop repeats it for some seconds. A script that got into this page could
// read either token; against that stands the Content-Security-Policy that the page is served with.
let accessToken: string | undefined;

/** Whether there is a session, as far as this tab knows. */
export const signedIn = createStore(readRefreshToken() !== undefined);

/** The token to send with requests; none before the first refresh after a reload. */
export function readAccessToken(): string | undefined {
  return accessToken;
}

/** The token for the next refresh, if there is a session. */
export function readRefreshToken(): string | undefined {
  return sessionStorage.getItem(STORED_AS) ?? undefined;
}

/** Keeps the credentials of a session that was opened or refreshed. */
export function keepCredentials(credentials: Credentials): void {
  accessToken = credentials.accessToken;
  sessionStorage.setItem(STORED_AS, credentials.refreshToken);
  signedIn.set(true);
}

/** Drops the credentials, whatever they are still good for: requests from now on are nobody's. */
export function dropCredentials(): void {
  accessToken = undefined;
  sessionStorage.removeItem(STORED_AS);
}
