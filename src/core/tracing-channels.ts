import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';

/** Work that is told of while it is done. */
export interface Timed {
  /** When it began (performance.now), for whoever measures it. */
  startedAt?: number;
}

/** What the database is asked: single statements, whole transactions, and each statement of a unit of work. */
export interface Asking extends Timed {
  kind: 'read' | 'write' | 'transaction' | 'statement';
  /** The statement, without its values. */
  text?: string;
}

/** A password that is hashed, or held against a hash. */
export interface Hashing extends Timed {
  kind: 'check' | 'make';
}

/** A root field of the GraphQL schema that is resolved. */
export interface Resolving extends Timed {
  field: string;
}

/** What is asked of the database. Costs next to nothing while nobody listens, as the others do. */
export const asking: TracingChannel<unknown, Asking> = tracingChannel('shopfront.database');

/** What hashes. */
export const hashing: TracingChannel<unknown, Hashing> = tracingChannel('shopfront.hash');

/** What resolves. */
export const resolving: TracingChannel<unknown, Resolving> = tracingChannel('shopfront.resolver');
