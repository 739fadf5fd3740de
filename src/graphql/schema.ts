import {
  printSchema,
  lexicographicSortSchema,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { buildSchema, type NonEmptyArray, type PubSub } from 'type-graphql';
import { features } from '../features.ts';
import { IGNORES_IDEMPOTENCY_KEY } from '../api/ignores-idempotency-key.ts';
import { resolvingChannel } from '../core/tracing-channels.ts';
import { NodeResolver } from './node.resolver.ts';

type ResolverClass = new () => object;

// type-graphql requires it for subscriptions. Ours read the change log and publish nothing.
const NO_PUB_SUB: PubSub = { publish: rejectTopic, subscribe: rejectTopic };
type Resolve = GraphQLFieldResolver<unknown, unknown>;

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
    `Root type of all mutations. The fields of a request run one after another. A POST with one mutation and the header \`Idempotency-Key\` is executed once: for a day, a repeated request gets the stored response. ${namesOfIgnoring(schema)} ignore the header.`,
  );
  describe(
    schema.getSubscriptionType(),
    'Root type of all subscriptions, by WebSocket or server-sent events. An operation has one field.',
  );
  for (const type of [schema.getQueryType(), schema.getMutationType()]) if (type) timeFields(type);
  return schema;
}

function namesOfIgnoring(schema: GraphQLSchema): string {
  const ignoring = Object.values(schema.getMutationType()?.getFields() ?? {}).filter(
    ({ extensions }) => extensions[IGNORES_IDEMPOTENCY_KEY],
  );
  return new Intl.ListFormat('en').format(ignoring.map(({ name }) => `\`${name}\``).toSorted());
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

// Times root fields only: nested fields are resolved in batches, or from loaded data.
function timeFields(type: GraphQLObjectType): void {
  for (const definition of Object.values(type.getFields())) {
    const { name, resolve } = definition;
    if (resolve) definition.resolve = timed(`${type.name}.${name}`, resolve);
  }
}

function timed(field: string, resolve: Resolve): Resolve {
  return (...args) => resolvingChannel.tracePromise(async () => resolve(...args), { field });
}
