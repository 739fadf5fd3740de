/** How much of a body is shown. */
const SHOWN = 300;

/** What a deployment answered, and what it was asked. */
export class Answer {
  constructor(
    /** The question in words, such as `GET /users/me/ with a bearer token`. */
    readonly asked: string,
    readonly status: number,
    readonly headers: Headers,
    readonly text: string,
  ) {}

  /** The body as JSON; undefined where it is none. */
  get body(): unknown {
    try {
      return JSON.parse(this.text) as unknown;
    } catch {
      return undefined;
    }
  }

  /** A member of the body; undefined where there is none. */
  member(name: string): unknown {
    return memberOf(this.body, name);
  }

  /** The answer in a few words. */
  get summary(): string {
    const shown = this.text.length > SHOWN ? `${this.text.slice(0, SHOWN)}…` : this.text;
    return `${this.status} ${shown === '' ? 'without a body' : shown}`;
  }
}

/** A member of a JSON value; undefined where it is no object, or has none of that name. */
export function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
