const HIDDEN = '<hidden>';
/** How much of a text is shown. */
const SHOWN = 300;
/** Shorter ones would take ordinary text with them wherever they happen to stand in it. */
const TELLING_LENGTH = 4;
// What looks like a credential, or stands where one does, whoever gave it out.
const CREDENTIALS: readonly [RegExp, string][] = [
  [/\beyJ[\w-]*\.[\w-]*(?:\.[\w-]*)?/g, HIDDEN],
  [/\$2[abxy]\$\d\d\$[\w./]+/g, HIDDEN],
  [/("(?:access_token|refresh_token|session_key|password|hashed_?password)"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi, `$1"${HIDDEN}"`],
  // A word as long as a key is taken for one.
  [/(?<![\w-])[\w-]{32,}(?![\w-])/g, HIDDEN],
  [/\b(password=)[^&\s"]+/gi, `$1${HIDDEN}`],
];

/** What may not be printed: passwords, the signing secret, and every credential that a deployment gives out. */
export class Secrets {
  private readonly forms = new Set<string>();

  add(secret: string): void {
    if (secret.length < TELLING_LENGTH) return;
    const inJson = JSON.stringify(secret).slice(1, -1);
    for (const form of [secret, inJson, encodeURIComponent(secret), new URLSearchParams({ p: secret }).toString().slice(2)])
      this.forms.add(form);
  }

  /** The text without any secret, shortened, on one line and without the letters that a terminal takes for orders. */
  hide(text: string): string {
    let hidden = text;
    for (const form of [...this.forms].toSorted((a, b) => b.length - a.length)) hidden = hidden.replaceAll(form, HIDDEN);
    for (const [pattern, replacement] of CREDENTIALS) hidden = hidden.replace(pattern, replacement);
    // Cut before, half a secret would be none to be found.
    const shown = hidden.length > SHOWN ? `${hidden.slice(0, SHOWN)}…` : hidden;
    return shown.replace(/\p{Cc}+/gu, ' ');
  }
}
