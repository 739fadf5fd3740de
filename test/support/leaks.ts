import assert from 'node:assert/strict';
import { TEST_SECRET } from './databases.ts';

/** The password of every user that the tests make, unless they say otherwise. */
export const PASSWORD = 'correct horse battery';

// What no answer may hold, whatever was asked: hashes, secrets, stacks, our statements, the words of drivers and libraries.
const IN_ANSWERS: readonly [string, RegExp][] = [
  ['a password hash', /\$2[abxy]\$\d\d\$/],
  // What was asked for by that name is refused by that name; as a member, it would be the thing itself.
  ['the hash as a member', /"(?:hashed_?password|key_?hash)"\s*:/i],
  ['a stack', /\bat (?:\S+ )?\(?(?:file:|node:|\/)\S+:\d+:\d+\)?|node_modules/],
  [
    'our SQL',
    /\b(?:from|into|update|join) "?(?:session|login_failure|blog_entry|idempotency_key|legacy_call|product_tally|api_key|password_reset|registration|mail_count|webhook|webhook_delivery|audit_entry)"?\b|"user"\."?pk/i,
  ],
  ['words of the database', /\brelation "|duplicate key value|violates \w+[ -]\w+ constraint|syntax error at or near|invalid input syntax/],
  // Not inside a token, which has 43 characters or more: random letters may read "pglite".
  ['words of a library', /(?<![\w-])(?![\w-]{40})[\w-]*?(?:mikro-?orm|kysely|pg-pool|PGlite|bcrypt\b)/i],
  ['the secret', literally(TEST_SECRET)],
];

// What no log may hold. A stack belongs there, where the fault is ours.
const IN_LOGS: readonly [string, RegExp][] = [
  ['a password hash', /\$2[abxy]\$\d\d\$/],
  ['the name of the hash', /hashed_?password/i],
  ['a token', /\beyJ[\w-]+\.[\w-]+/],
  ['an API key', /\bsk_[\w-]{43}/],
  ['the secret of a webhook', /\bwhsec_[\w+/]{43}/],
  ['a password', literally(PASSWORD)],
  ['the secret', literally(TEST_SECRET)],
];

/** What has been answered, logged and printed, looked at for what must not be there (docs/attacks.md, X1). */
export class Recorder {
  /** How many texts were looked at. */
  looked = 0;
  private readonly found: string[] = [];
  private readonly keys = new Set<string>();

  /** Looks at an answer, with its headers, and remembers the session keys that it gives out. */
  answer(text: string): void {
    this.look('an answer', IN_ANSWERS, text);
    for (const [, key] of text.matchAll(/"(?:session_key|sessionKey)":"([\w-]{43})"/g)) if (key !== undefined) this.keys.add(key);
  }

  /** Looks at a line of the log, or at what a process has printed. */
  log(text: string): void {
    this.look('the log', IN_LOGS, text);
    for (const [word] of text.matchAll(/(?<![\w-])[\w-]{43}(?![\w-])/g)) {
      if (this.keys.has(word)) this.found.push(`a session key in the log: ${excerpt(text, text.indexOf(word))}`);
    }
  }

  /** Throws where anything was found. */
  assertClean(): void {
    assert.deepEqual(this.found.splice(0), []);
  }

  private look(where: string, patterns: readonly [string, RegExp][], text: string): void {
    this.looked++;
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
