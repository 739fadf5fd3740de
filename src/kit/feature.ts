import type { EntityClass } from '@mikro-orm/postgresql';
import type { Context } from './context.ts';
import type { NodeFinder } from './node.ts';
import type { RootPlan } from './plan.ts';
import type { Routes } from './route.ts';

/** What a feature brings into the house. */
export interface Feature {
  entities?: readonly EntityClass<object>[];
  resolvers?: readonly (new () => object)[];
  routes?: Routes;
  /** What its rows stand under in the REST reference. */
  title?: string;
  /** How `node(id:)` finds nodes, by the name of their type. */
  nodes?: Readonly<Record<string, NodeFinder>>;
  /** Root fields of the schema that can be answered straight from rows. */
  plans?: Readonly<Record<string, RootPlan>>;
  /** Deletes what has expired, every half minute. Returns how much. */
  sweep?(ctx: Context): Promise<number>;
}
