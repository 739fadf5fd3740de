import { printSchema, lexicographicSortSchema, type GraphQLObjectType, type GraphQLSchema } from 'graphql';
import { buildSchema, type NonEmptyArray } from 'type-graphql';
import { features } from '../features.ts';
import { NodeResolver } from './node.resolver.ts';

type ResolverClass = new () => object;

/** The executable schema: the resolvers of all features, and `node`. */
export async function makeSchema(): Promise<GraphQLSchema> {
  const resolvers: NonEmptyArray<ResolverClass> = [NodeResolver, ...features.flatMap(({ resolvers: own = [] }) => [...own])];
  // Input is checked by the services, which both doors go through.
  const schema = await buildSchema({ resolvers, validate: false });
  describe(schema.getQueryType(), 'What can be read.');
  describe(schema.getMutationType(), 'What can be done. The fields of one request run one after another.');
  return schema;
}

/** The schema as text, in an order that does not depend on the code's. */
export function schemaText(schema: GraphQLSchema): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

// type-graphql has no place for these two.
function describe(type: GraphQLObjectType | null | undefined, description: string): void {
  if (type) type.description = description;
}
