import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';

/** Work that is published on a tracing channel. */
export interface Timed {
  /** Start time (performance.now), set by the subscriber that measures it. */
  startedAt?: number;
}

/** A database call: a single statement, a transaction, or a statement of a unit of work. */
export interface DatabaseCall extends Timed {
  kind: 'read' | 'write' | 'transaction' | 'statement';
  /** SQL of the statement, without its values. */
  text?: string;
}

/** Hashing a password (`make`), or verifying a password against a hash (`check`). */
export interface Hashing extends Timed {
  kind: 'check' | 'make';
}

/** Resolving a root field of the GraphQL schema. */
export interface Resolving extends Timed {
  field: string;
}

/** Database calls. All channels cost next to nothing without subscribers. */
export const databaseChannel: TracingChannel<unknown, DatabaseCall> =
  tracingChannel('shopfront.database');

/** Password hashing. */
export const hashingChannel: TracingChannel<unknown, Hashing> = tracingChannel('shopfront.hash');

/** GraphQL root fields. */
export const resolvingChannel: TracingChannel<unknown, Resolving> =
  tracingChannel('shopfront.resolver');
