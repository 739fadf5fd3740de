import type { Config } from './config.ts';

/** Stands where something was that nobody may read. */
export const REDACTED = '[Redacted]';

/** Settings that hold secrets. */
export type Secrets = Partial<Pick<Config, 'signingSecrets' | 'databaseUrl' | 'replicaUrls' | 'smtpUrl'>>;

// Whatever its name: bcrypt hashes, tokens, API keys, secrets of webhooks, credentials as headers and URLs carry them.
const TEXTS: readonly [RegExp, string][] = [
  [/\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}/g, REDACTED],
  // From where a run of such letters begins only: what is logged may be made to be slow to look through.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+(\.[\w-]*)?/g, REDACTED],
  [/(?<![\w-])sk_[\w-]{43}/g, REDACTED],
  [/(?<![\w-])whsec_[\w+/]{43}=/g, REDACTED],
  [/\b(bearer|basic) +[\w+/=.~-]{6,}/gi, `$1 ${REDACTED}`],
  [/:\/\/[^\s"/@]*@/g, `://${REDACTED}@`],
  [/([?&](?:username|password|token|access_token|session_key)=)[^&\s"]*/gi, `$1${REDACTED}`],
];

// Whatever its value: members and headers of these names, in JSON.
const MEMBERS =
  /("(?:password|hashed_?password|current|new|secret|token|access_?token|refresh_?token|session_?key|authorization|cookie|x-session-?id)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi;

/** Takes out of a text whatever must not leave the process: all that is printed or logged goes through it. */
export type Redact = (text: string) => string;

/** Makes what redacts, with the secrets of the configuration among what it knows. */
export function redactor({ signingSecrets = [], databaseUrl, replicaUrls = [], smtpUrl }: Secrets): Redact {
  const secrets = [...signingSecrets, ...[databaseUrl, smtpUrl, ...replicaUrls].map(passwordIn)].filter((secret) => secret !== '');
  // A text may be written as it is, or as JSON or a URL writes it.
  const forms = new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]));
  return (text) => {
    let found = text;
    for (const form of forms) found = found.replaceAll(form, REDACTED);
    for (const [pattern, replacement] of TEXTS) found = found.replace(pattern, replacement);
    return found.replace(MEMBERS, `$1"${REDACTED}"`);
  };
}

function passwordIn(url: string | undefined): string {
  return url === undefined ? '' : decodeURIComponent(new URL(url).password);
}
