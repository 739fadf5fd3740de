import type { EntityClass } from '@mikro-orm/postgresql';
import type { Context } from './context.ts';
import type { NodeFinder } from './node.ts';
import type { Routes } from './route.ts';

/** What a feature brings into the house. */
export interface Feature {
  entities?: readonly EntityClass<object>[];
  resolvers?: readonly (new () => object)[];
  routes?: Routes;
  /** How `node(id:)` finds nodes, by the name of their type. */
  nodes?: Readonly<Record<string, NodeFinder>>;
  /** Deletes what has expired, every half minute. Returns how much. */
  sweep?(ctx: Context): Promise<number>;
}
