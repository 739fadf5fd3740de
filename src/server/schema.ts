import { printSchema, lexicographicSortSchema, type GraphQLSchema } from 'graphql';
import { buildSchema, type NonEmptyArray } from 'type-graphql';
import { features } from '../features.ts';
import { NodeResolver } from './node.resolver.ts';

type ResolverClass = new () => object;

/** The executable schema: the resolvers of all features, and `node`. */
export function makeSchema(): Promise<GraphQLSchema> {
  const resolvers: NonEmptyArray<ResolverClass> = [NodeResolver, ...features.flatMap(({ resolvers: own = [] }) => [...own])];
  // Input is checked by the services, which both doors go through.
  return buildSchema({ resolvers, validate: false });
}

/** The schema as text, in an order that does not depend on the code's. */
export function schemaText(schema: GraphQLSchema): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
