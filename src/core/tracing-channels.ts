import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';

/** A database call: a hot read, a transaction, or a statement of Kysely or the ORM. */
export interface DatabaseCall {
  kind: 'read' | 'transaction' | 'statement';
  /** SQL of the statement, without its values. */
  text?: string;
}

/** Hashing a password (`make`), or verifying a password against a hash (`check`). */
export interface Hashing {
  kind: 'check' | 'make';
}

/** Database calls. All channels cost next to nothing without subscribers. */
export const databaseChannel: TracingChannel<unknown, DatabaseCall> =
  tracingChannel('shopfront.database');

/** Password hashing. */
export const hashingChannel: TracingChannel<unknown, Hashing> = tracingChannel('shopfront.hash');
