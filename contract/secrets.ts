const HIDDEN = '<hidden>';
/** Maximum length of a printed text, in characters. */
const MAX_LENGTH = 300;
/** Minimum length of a secret, in characters. Shorter ones would match ordinary text. */
const MIN_SECRET_LENGTH = 4;
// Shapes of credentials, whatever their source: tokens, bcrypt hashes, and any word as long as a
// session key.
const SHAPES = [
  /\beyJ[\w-]*\.[\w-]*(?:\.[\w-]*)?/g,
  /\$2[abxy]\$\d\d\$[\w./]+/g,
  /(?<![\w-])[\w-]{32,}(?![\w-])/g,
];
// Places where credentials appear.
const PLACES: readonly [RegExp, string][] = [
  [
    /("(?:access_token|refresh_token|session_key|password|hashed_?password)"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi,
    `$1"${HIDDEN}"`,
  ],
  [/\b(password=)[^&\s"]+/gi, `$1${HIDDEN}`],
];

/** Texts that may not be printed: passwords, the signing secret, and all issued credentials. */
export class Secrets {
  // Each form of a secret, with the shell variable that stands for the secret.
  private readonly forms = new Map<string, string>();

  /** Adds a secret, with the name of the shell variable that stands for it in commands. */
  add(secret: string, variable: string): void {
    if (secret.length < MIN_SECRET_LENGTH) return;
    const inJson = JSON.stringify(secret).slice(1, -1);
    for (const form of [
      secret,
      inJson,
      encodeURIComponent(secret),
      new URLSearchParams({ p: secret }).toString().slice(2),
    ])
      if (!this.forms.has(form)) this.forms.set(form, variable);
  }

  /** The text without secrets and control characters, shortened, on one line. */
  redact(text: string): string {
    let redacted = text;
    for (const [form] of this.longestFirst()) redacted = redacted.replaceAll(form, HIDDEN);
    for (const [pattern, replacement] of PLACES) redacted = redacted.replace(pattern, replacement);
    redacted = hideShapes(redacted);
    // Shortened last, because half a secret would not be found.
    const shown = redacted.length > MAX_LENGTH ? `${redacted.slice(0, MAX_LENGTH)}…` : redacted;
    return shown.replace(/\p{Cc}+/gu, ' ');
  }

  /** The text as one word of a POSIX shell, with variables in place of secrets. */
  shellWord(text: string): string {
    return this.shellParts(text) || "''";
  }

  private shellParts(text: string): string {
    const [form, variable] = this.longestFirst().find(([found]) => text.includes(found)) ?? [];
    if (form !== undefined)
      return text
        .split(form)
        .map((part) => this.shellParts(part))
        .join(`"$${variable}"`);
    return text && `'${hideShapes(text).replaceAll("'", String.raw`'\''`)}'`;
  }

  private longestFirst(): [string, string][] {
    return [...this.forms].toSorted(([a], [b]) => b.length - a.length);
  }
}

function hideShapes(text: string): string {
  return SHAPES.reduce((hidden, shape) => hidden.replaceAll(shape, HIDDEN), text);
}
