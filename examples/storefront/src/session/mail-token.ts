/** Pages that links in mails open with a token. */
export type MailPage = 'confirm' | 'reset';

// In memory only, so that the token is neither in the history of the browser nor sent as a referrer.
let current: { page: MailPage; token: string } | undefined;

/** Takes a token from the address, and removes it there. Returns the page for it, if there is one. */
export function takeMailToken(): MailPage | undefined {
  const [, page, token = ''] = /^#(confirm|reset)=(.*)$/.exec(location.hash) ?? [];
  if (page !== 'confirm' && page !== 'reset') return undefined;
  history.replaceState(history.state, '', location.pathname + location.search);
  current = { page, token };
  return page;
}

/** The token for this page; undefined if it was not opened by a link in a mail. */
export function mailToken(page: MailPage): string | undefined {
  return current?.page === page ? current.token : undefined;
}

/** Forgets the token after its use. */
export function forgetMailToken(): void {
  current = undefined;
}
