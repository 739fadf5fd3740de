import { Field, ID, InterfaceType } from 'type-graphql';
import type { Context } from '../request/context.ts';

/** An object with a global id (Relay global object identification specification). */
@InterfaceType({ description: 'An object that `node(id:)` finds by its global id.' })
export abstract class Node {
  @Field(() => ID, {
    simple: true,
    description: 'Opaque global id, for `node(id:)` and client caches.',
  })
  get id(): string {
    return globalId(this.constructor.name, this.nodeKey);
  }

  /** Key of this node, unique within its type. */
  protected abstract get nodeKey(): string | number;
}

/** Finds nodes of one type, in the order of the keys; null if missing or not visible. */
export type NodeFinder = (ctx: Context, keys: readonly string[]) => Promise<(Node | null)[]>;

/** Returns the global id of a node. */
export function globalId(type: string, key: string | number): string {
  return Buffer.from(`${type}:${key}`).toString('base64url');
}

/** Returns the type and key of a global id, or undefined for an invalid id. */
export function readGlobalId(id: string): { type: string; key: string } | undefined {
  const text = Buffer.from(id, 'base64url').toString();
  const [, type, key] = /^([A-Z][A-Za-z]*):([\w-]+)$/.exec(text) ?? [];
  if (type === undefined || key === undefined || globalId(type, key) !== id) return undefined;
  return { type, key };
}

/** Returns the key of a global id, or undefined for an invalid id or one of another type. */
export function nodeKeyOf(type: string, id: string): string | undefined {
  const parts = readGlobalId(id);
  return parts?.type === type ? parts.key : undefined;
}
