import type { Deployment } from './deployment.ts';

/** What a check has to be given before it can be made. */
export type Need = 'user' | 'disabled user' | 'disabled password' | 'secret' | 'write';

/**
 * Who made a promise: the interface's own text, or a decision about what that text leaves open, where another deployment
 * may rightly have decided otherwise.
 */
export type Level = 'interface' | 'decision';

/** One thing that a deployment promises to its clients, and how to see from outside whether it holds. */
export interface Promised {
  /** The section and a name, such as `4.1:token`. */
  id: string;
  /** The interface's section. */
  section: string;
  /** The row that it is about, such as `GET /users/me/`. */
  row: string;
  level: Level;
  needs: readonly Need[];
  /** The promise in one sentence. */
  says: string;
  /** Returns where the promise holds; throws `Broken` where it does not, `NotTried` where that cannot be seen. */
  check: (at: Deployment) => Promise<void>;
}

/** The promises of one section of the interface. */
export interface Section {
  number: string;
  title: string;
  promises: readonly Promised[];
}

/** Makes a section of promises that are named within it. */
export function section(number: string, title: string, promises: readonly Omit<Promised, 'section'>[]): Section {
  return { number, title, promises: promises.map((promised) => ({ ...promised, id: `${number}:${promised.id}`, section: number })) };
}

/** Thrown by a check that has seen a promise broken. */
export class Broken extends Error {
  constructor(
    readonly asked: string,
    readonly expected: string,
    readonly came: string,
  ) {
    super(`${asked}: expected ${expected}, came ${came}`);
  }
}

/** Thrown by a check that cannot tell whether its promise holds. */
export class NotTried extends Error {}
