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

  /** Status and body in one text. */
  get summary(): string {
    return `${this.status} ${this.text === '' ? 'without a body' : this.text}`;
  }
}

/** A member of a JSON value; undefined where it is no object, or has none of that name. */
export function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
