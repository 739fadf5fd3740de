import type { EntityClass } from '@mikro-orm/postgresql';
import type { Context } from '../request/context.ts';
import type { TellEvent } from './event-serializer.ts';
import type { DraftLetter } from './mail.ts';
import type { NodeFinder } from './node.ts';
import type { RootPlan } from './compiled-fields.ts';
import type { Routes } from './route.ts';

/** What a feature brings into the house. */
export interface Feature {
  entities?: readonly EntityClass<object>[];
  resolvers?: readonly (new () => object)[];
  routes?: Routes;
  /** What its rows stand under in the REST reference. */
  title?: string;
  /** What those endpoints are about, in the REST reference. */
  description?: string;
  /** How `node(id:)` finds nodes, by the name of their type. */
  nodes?: Readonly<Record<string, NodeFinder>>;
  /** Root fields of the schema that can be answered straight from rows. */
  plans?: Readonly<Record<string, RootPlan>>;
  /** Who drafts the mails that its services ask for (src/mail), by their kind. */
  letters?: Readonly<Record<string, DraftLetter>>;
  /** What webhooks tell of what happens to its rows (src/webhooks), by the kind of event. */
  events?: Readonly<Record<string, TellEvent>>;
  /** Deletes what has expired, every half minute. Returns how much. */
  sweep?(ctx: Context): Promise<number>;
}
