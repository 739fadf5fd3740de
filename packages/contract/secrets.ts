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

interface Secret {
  text: string;
  /** The shell variable that stands for it in commands. */
  variable: string;
}

/** Texts that may not be printed: passwords, the signing secret, and all issued credentials. */
export class Secrets {
  // The encoded forms of each secret.
  private readonly forms = new Map<string, Secret>();

  /** Whether a secret is too short to be found in other text. */
  hasShort = false;

  /** Adds a secret, with the name of the shell variable that stands for it in commands. */
  add(secret: string, variable: string): void {
    if (secret.length < MIN_SECRET_LENGTH) {
      this.hasShort = true;
      return;
    }
    const inJson = JSON.stringify(secret).slice(1, -1);
    for (const form of [
      secret,
      inJson,
      encodeURIComponent(secret),
      new URLSearchParams({ p: secret }).toString().slice(2),
    ])
      if (!this.forms.has(form)) this.forms.set(form, { text: secret, variable });
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

  /**
   * The text as one word of a POSIX shell, with variables in place of secrets. Undefined if it
   * contains another credential, an encoded secret or a control character.
   */
  shellWord(text: string): string | undefined {
    const words = this.shellParts(text);
    return words.includes(undefined) ? undefined : words.join('') || "''";
  }

  private shellParts(text: string): (string | undefined)[] {
    const [form, secret] = this.longestFirst().find(([found]) => text.includes(found)) ?? [];
    if (form !== undefined && secret !== undefined)
      return text
        .split(form)
        .flatMap((part, index) => [
          ...(index === 0 ? [] : [form === secret.text ? `"$${secret.variable}"` : undefined]),
          ...this.shellParts(part),
        ]);
    if (/\p{Cc}/u.test(text) || hideShapes(text) !== text) return [undefined];
    return text === '' ? [] : [`'${text.replaceAll("'", String.raw`'\''`)}'`];
  }

  private longestFirst(): [string, Secret][] {
    return [...this.forms].toSorted(([a], [b]) => b.length - a.length);
  }
}

function hideShapes(text: string): string {
  return SHAPES.reduce((hidden, shape) => hidden.replaceAll(shape, HIDDEN), text);
}
