import type { Deployment } from './deployment.ts';
import type { SentRequest } from './request.ts';

/** An option without which a check is skipped. */
export type Need = 'user' | 'disabled user' | 'disabled password' | 'secret' | 'write';

/**
 * The source of a promise: the text of the interface, or a decision where the interface is open.
 * Another deployment may have decided differently.
 */
export type Level = 'interface' | 'decision';

/** One promise of a deployment to its clients, with the check of it over HTTP. */
export interface Promised {
  /** The section and a name, such as `4.1:token`. */
  id: string;
  /** The section of the interface. */
  section: string;
  /** The endpoint, such as `GET /users/me/`. */
  endpoint: string;
  level: Level;
  needs: readonly Need[];
  /** The promise in one sentence. */
  says: string;
  /** Returns if the check passes. Throws `Failed`, or `Skipped` if it cannot be checked. */
  check: (at: Deployment) => Promise<void>;
}

/** The promises of one section of the interface. */
export interface Section {
  number: string;
  title: string;
  promises: readonly Promised[];
}

/** Creates a section. Ids of promises get its number as their prefix. */
export function section(
  number: string,
  title: string,
  promises: readonly Omit<Promised, 'section'>[],
): Section {
  return {
    number,
    title,
    promises: promises.map((promised) => ({
      ...promised,
      id: `${number}:${promised.id}`,
      section: number,
    })),
  };
}

/** Thrown by a check that failed. Its request is text if nothing was sent. */
export class Failed extends Error {
  constructor(
    readonly request: SentRequest | string,
    readonly expected: string,
    readonly response: string,
  ) {
    super(
      `${typeof request === 'string' ? request : request.description}: expected ${expected}, response ${response}`,
    );
  }
}

/** Thrown by a check that could not be made. */
export class Skipped extends Error {}
