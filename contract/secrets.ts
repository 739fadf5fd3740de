const HIDDEN = '<hidden>';
/** Maximum length of a printed text, in characters. */
const MAX_LENGTH = 300;
/** Minimum length of a secret, in characters. Shorter ones would match ordinary text. */
const MIN_SECRET_LENGTH = 4;
// Patterns of credentials, and of the places where they appear, whatever their source.
const CREDENTIALS: readonly [RegExp, string][] = [
  [/\beyJ[\w-]*\.[\w-]*(?:\.[\w-]*)?/g, HIDDEN],
  [/\$2[abxy]\$\d\d\$[\w./]+/g, HIDDEN],
  [
    /("(?:access_token|refresh_token|session_key|password|hashed_?password)"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi,
    `$1"${HIDDEN}"`,
  ],
  // Any word as long as a session key.
  [/(?<![\w-])[\w-]{32,}(?![\w-])/g, HIDDEN],
  [/\b(password=)[^&\s"]+/gi, `$1${HIDDEN}`],
];

/** Texts that may not be printed: passwords, the signing secret, and all issued credentials. */
export class Secrets {
  private readonly forms = new Set<string>();

  add(secret: string): void {
    if (secret.length < MIN_SECRET_LENGTH) return;
    const inJson = JSON.stringify(secret).slice(1, -1);
    for (const form of [
      secret,
      inJson,
      encodeURIComponent(secret),
      new URLSearchParams({ p: secret }).toString().slice(2),
    ])
      this.forms.add(form);
  }

  /** The text without secrets and control characters, shortened, on one line. */
  redact(text: string): string {
    let redacted = text;
    for (const form of [...this.forms].toSorted((a, b) => b.length - a.length))
      redacted = redacted.replaceAll(form, HIDDEN);
    for (const [pattern, replacement] of CREDENTIALS)
      redacted = redacted.replace(pattern, replacement);
    // Shortened last, because half a secret would not be found.
    const shown = redacted.length > MAX_LENGTH ? `${redacted.slice(0, MAX_LENGTH)}…` : redacted;
    return shown.replace(/\p{Cc}+/gu, ' ');
  }
}
