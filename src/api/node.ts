import { Field, ID, InterfaceType } from 'type-graphql';
import type { Context } from '../request/context.ts';

/** What has an id across the whole schema, by the Relay specification of global object identification. */
@InterfaceType({ description: 'What can be found again by its id with `node(id:)`.' })
export abstract class Node {
  @Field(() => ID, { simple: true, description: 'Global id, opaque. Good for `node(id:)` and for the cache of a client.' })
  get id(): string {
    return globalId(this.constructor.name, this.nodeKey);
  }

  /** What tells this node from others of its type. */
  protected abstract get nodeKey(): string | number;
}

/** Finds nodes of one type by their keys: in the order of the keys, null where there is none that the caller may see. */
export type NodeFinder = (ctx: Context, keys: readonly string[]) => Promise<(Node | null)[]>;

/** The opaque id of a node of this type. */
export function globalId(type: string, key: string | number): string {
  return Buffer.from(`${type}:${key}`).toString('base64url');
}

/** The type and key in a global id, or undefined where the text is none of ours. */
export function readGlobalId(id: string): { type: string; key: string } | undefined {
  const text = Buffer.from(id, 'base64url').toString();
  const [, type, key] = /^([A-Z][A-Za-z]*):([\w-]+)$/.exec(text) ?? [];
  if (type === undefined || key === undefined || globalId(type, key) !== id) return undefined;
  return { type, key };
}

/** The key of a node of this type in a global id, or undefined where the id is of another type or none of ours. */
export function nodeKeyOf(type: string, id: string): string | undefined {
  const found = readGlobalId(id);
  return found?.type === type ? found.key : undefined;
}
