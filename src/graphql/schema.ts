import {
  printSchema,
  lexicographicSortSchema,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { buildSchema, type NonEmptyArray, type PubSub } from 'type-graphql';
import { features } from '../features.ts';
import { NodeResolver } from './node.resolver.ts';

type ResolverClass = new () => object;

// type-graphql requires it for subscriptions. Ours read the change log and publish nothing.
const NO_PUB_SUB: PubSub = { publish: rejectTopic, subscribe: rejectTopic };

/** Builds the executable schema from the resolvers of all features and `node`. */
export async function makeSchema(): Promise<GraphQLSchema> {
  const resolvers: NonEmptyArray<ResolverClass> = [
    NodeResolver,
    ...features.flatMap(({ resolvers: featureResolvers = [] }) => [...featureResolvers]),
  ];
  // The services check the input, for both APIs.
  const schema = await buildSchema({ resolvers, validate: false, pubSub: NO_PUB_SUB });
  describe(schema.getQueryType(), 'Root type of all queries.');
  describe(
    schema.getMutationType(),
    `Root type of all mutations. The fields of a request run one after another. A POST with one mutation and the header \`Idempotency-Key\` is executed once: for a day, a repeated request gets the stored response. Mutations of credentials ignore the header.`,
  );
  describe(
    schema.getSubscriptionType(),
    'Root type of all subscriptions, by WebSocket or server-sent events. An operation has one field.',
  );
  return schema;
}

/** Returns the schema as text, sorted by name. */
export function schemaText(schema: GraphQLSchema): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

function rejectTopic(): never {
  throw new TypeError('PubSub is not supported');
}

// type-graphql has no option for the descriptions of root types.
function describe(type: GraphQLObjectType | null | undefined, description: string): void {
  if (type) type.description = description;
}
