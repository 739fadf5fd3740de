import type { Config } from './config.ts';

/** Replaces a secret. */
export const REDACTED = '[Redacted]';

/** Settings that contain secrets. */
export type Secrets = Partial<
  Pick<Config, 'signingSecrets' | 'databaseUrl' | 'databaseReplicaUrl' | 'smtpUrl'>
>;

// By value: bcrypt hashes, tokens, API keys, webhook secrets, credentials in headers and URLs.
const PATTERNS: readonly [RegExp, string][] = [
  [/\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}/g, REDACTED],
  // Matches only at the start of a run of these characters, because logged text may be crafted to
  // make the search slow.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+(\.[\w-]*)?/g, REDACTED],
  [/(?<![\w-])sk_[\w-]{43}/g, REDACTED],
  [/(?<![\w-])whsec_[\w+/]{43}=/g, REDACTED],
  [/\b(bearer|basic) +[\w+/=.~-]{6,}/gi, `$1 ${REDACTED}`],
  [/:\/\/[^\s"/@]*@/g, `://${REDACTED}@`],
  [/([?&](?:username|password|token|access_token|session_key)=)[^&\s"]*/gi, `$1${REDACTED}`],
];

// By name: members and headers in JSON.
const MEMBERS =
  /("(?:password|hashed_?password|current|new|secret|token|access_?token|refresh_?token|session_?key|authorization|cookie|x-session-?id)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi;

/** Removes secrets from a text. All printed and logged text passes through it. */
export type Redact = (text: string) => string;

/** Returns a function that also redacts the secrets of the configuration. */
export function redactor({
  signingSecrets = [],
  databaseUrl,
  databaseReplicaUrl,
  smtpUrl,
}: Secrets): Redact {
  const secrets = [
    ...signingSecrets,
    ...[databaseUrl, databaseReplicaUrl, smtpUrl].map(passwordIn),
  ].filter((secret) => secret !== '');
  // A secret may appear verbatim, escaped in JSON, or encoded in a URL.
  const forms = new Set(
    secrets.flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
    ]),
  );
  return (text) => {
    let redacted = text;
    for (const form of forms) redacted = redacted.replaceAll(form, REDACTED);
    for (const [pattern, replacement] of PATTERNS)
      redacted = redacted.replace(pattern, replacement);
    return redacted.replace(MEMBERS, `$1"${REDACTED}"`);
  };
}

function passwordIn(url: string | undefined): string {
  return url === undefined ? '' : decodeURIComponent(new URL(url).password);
}
