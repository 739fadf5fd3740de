import type { SentRequest } from './request.ts';

/** The response of a deployment, with its request. */
export class HttpResponse {
  constructor(
    readonly request: SentRequest,
    readonly status: number,
    readonly headers: Headers,
    readonly text: string,
  ) {}

  /** The body as JSON; undefined if it is not JSON. */
  get body(): unknown {
    try {
      return JSON.parse(this.text) as unknown;
    } catch {
      return undefined;
    }
  }

  /** A member of the body; undefined if there is none. */
  member(name: string): unknown {
    return memberOf(this.body, name);
  }

  /** Status and body in one text. */
  get summary(): string {
    return `${this.status} ${this.text === '' ? 'without a body' : this.text}`;
  }
}

/** A member of a JSON value; undefined if the value is not an object or lacks the member. */
export function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
