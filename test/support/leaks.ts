import assert from 'node:assert/strict';
import { TEST_SECRET } from './databases.ts';

/** The default password of test users. */
export const PASSWORD = 'correct horse battery';

// Not allowed in any response: hashes, secrets, stack traces, our SQL, messages of drivers and
// libraries.
const IN_RESPONSES: readonly [string, RegExp][] = [
  ['a password hash', /\$2[abxy]\$\d\d\$/],
  // An error may repeat a name from the request; as a member, it would be the value.
  ['the hash as a member', /"(?:hashed_?password|key_?hash)"\s*:/i],
  ['a stack trace', /\bat (?:\S+ )?\(?(?:file:|node:|\/)\S+:\d+:\d+\)?|node_modules/],
  [
    'our SQL',
    /\b(?:from|into|update|join) "?(?:session|login_failure|blog_entry|idempotency_key|rest_call|product_row_count|api_key|password_reset|registration|mail_count|webhook|audit_entry)"?\b|"user"\."?pk/i,
  ],
  [
    'a message of the database',
    /\brelation "|duplicate key value|violates \w+[ -]\w+ constraint|syntax error at or near|invalid input syntax/,
  ],
  // Not inside a token, which has 43 characters or more: random letters may read "pglite".
  [
    'the name of a library',
    /(?<![\w-])(?![\w-]{40})[\w-]*?(?:mikro-?orm|kysely|pg-pool|bcrypt\b)/i,
  ],
  ['the secret', literally(TEST_SECRET)],
];

// Not allowed in the log. Stack traces of our own errors are.
const IN_LOGS: readonly [string, RegExp][] = [
  ['a password hash', /\$2[abxy]\$\d\d\$/],
  ['the name of the hash', /hashed_?password/i],
  ['a token', /\beyJ[\w-]+\.[\w-]+/],
  ['an API key', /\bsk_[\w-]{43}/],
  ['the secret of a webhook', /\bwhsec_[\w+/]{43}/],
  ['a password', literally(PASSWORD)],
  ['the secret', literally(TEST_SECRET)],
];

/** Checks responses, log lines and output for leaks (docs/generated/attacks.md, X1). */
export class Recorder {
  /** Number of checked texts. */
  checked = 0;
  private readonly found: string[] = [];
  private readonly keys = new Set<string>();

  /** Checks a response with its headers, and remembers its session keys. */
  answer(text: string): void {
    this.check('an answer', IN_RESPONSES, text);
    for (const [, key] of text.matchAll(/"(?:session_key|sessionKey)":"([\w-]{43})"/g))
      if (key !== undefined) this.keys.add(key);
  }

  /** Checks a log line, or the output of a process. */
  log(text: string): void {
    this.check('the log', IN_LOGS, text);
    for (const [word] of text.matchAll(/(?<![\w-])[\w-]{43}(?![\w-])/g)) {
      if (this.keys.has(word))
        this.found.push(`a session key in the log: ${excerpt(text, text.indexOf(word))}`);
    }
  }

  /** Throws if a leak was found. */
  assertClean(): void {
    assert.deepEqual(this.found.splice(0), []);
  }

  private check(where: string, patterns: readonly [string, RegExp][], text: string): void {
    this.checked++;
    for (const [what, pattern] of patterns) {
      const at = text.search(pattern);
      if (at >= 0) this.found.push(`${what} in ${where}: ${excerpt(text, at)}`);
    }
  }
}

function literally(text: string): RegExp {
  return new RegExp(text.replace(/[^\w]/g, '\\$&'));
}

function excerpt(text: string, at: number): string {
  return text.slice(Math.max(0, at - 60), at + 120);
}
