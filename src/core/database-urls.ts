/** The scheme and the credentials of a URL, its hosts with their ports, and the rest. */
const PARTS = /^([^/]*:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

/**
 * Returns a URL for each host of a PostgreSQL URL, which may have several, separated by commas
 * (PostgreSQL, 32.1.1.2), without `target_session_attrs`.
 */
export function databaseUrlsOf(text: string): string[] {
  const [, start = '', hosts = text, rest = ''] = PARTS.exec(text) ?? [];
  return hosts.split(',').map((host) => withoutTarget(`${start}${host}${rest}`));
}

/** Returns the values of `target_session_attrs` in a PostgreSQL URL. */
export function sessionTargetsOf(text: string): string[] {
  return new URLSearchParams(/\?[^#]*/.exec(text)?.[0]).getAll('target_session_attrs');
}

// The driver would pass it on as a setting of the session.
function withoutTarget(text: string): string {
  const url = URL.parse(text);
  if (!url?.searchParams.has('target_session_attrs')) return text;
  url.searchParams.delete('target_session_attrs');
  return url.href;
}
