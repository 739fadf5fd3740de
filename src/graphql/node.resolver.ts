import { Arg, Ctx, ID, Query, Resolver } from 'type-graphql';
import { features } from '../features.ts';
import type { Context } from '../request/context.ts';
import { loader } from '../request/loaders.ts';
import { Node, readGlobalId, type NodeFinder } from '../api/node.ts';

const finders: ReadonlyMap<string, NodeFinder> = new Map(
  features.flatMap(({ nodes = {} }) => Object.entries(nodes)),
);

@Resolver()
export class NodeResolver {
  @Query(() => Node, {
    nullable: true,
    description: 'The object with this id; null if it does not exist or the caller may not see it.',
  })
  node(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, { description: 'A global id.' }) id: string,
  ): Promise<Node | null> {
    return find(ctx, id);
  }

  @Query(() => [Node], {
    nullable: 'items',
    description:
      'The objects with these ids, in the same order; null for each that does not exist or that the caller may not see.',
  })
  nodes(
    @Ctx() ctx: Context,
    @Arg('ids', () => [ID], { description: 'Global ids, at most 100.' }) ids: string[],
  ): Promise<(Node | null)[]> {
    return Promise.all(ids.map((id) => find(ctx, id)));
  }
}

async function find(ctx: Context, id: string): Promise<Node | null> {
  const { type = '', key = '' } = readGlobalId(id) ?? {};
  const finder = finders.get(type);
  return finder
    ? loader(ctx, `node ${type}`, async (keys: readonly string[]) => finder(ctx, keys)).load(key)
    : null;
}
