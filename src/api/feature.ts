import type { EntityClass } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import type { WriteMail } from './mail.ts';
import type { NodeFinder } from './node.ts';
import type { JobWorker } from './job-worker.ts';
import type { CompiledRoot } from './compiled-fields.ts';
import type { Routes } from './route.ts';

/** The parts that a feature adds to the application. */
export interface Feature {
  entities?: readonly EntityClass<object>[];
  resolvers?: readonly (new () => object)[];
  routes?: Routes;
  /** Heading of its endpoints in the REST reference. */
  title?: string;
  /** Description of its endpoints in the REST reference. */
  description?: string;
  /** Node finders for `node(id:)`, by type name. */
  nodes?: Readonly<Record<string, NodeFinder>>;
  /** Root fields that can be resolved from database rows without entities. */
  compiledFields?: Readonly<Record<string, CompiledRoot>>;
  /** Writers of mails (features/mail), by kind. */
  mails?: Readonly<Record<string, WriteMail>>;
  /** Creates the worker that runs queued jobs. Polled every second. */
  worker?(config: Config, log: Logger): JobWorker<object> | undefined;
  /** Deletes expired rows. Called every 30 s. Returns the number of deleted rows. */
  sweep?(ctx: Context): Promise<number>;
}
