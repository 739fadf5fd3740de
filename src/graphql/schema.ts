import { printSchema, lexicographicSortSchema, type GraphQLFieldResolver, type GraphQLObjectType, type GraphQLSchema } from 'graphql';
import { buildSchema, type NonEmptyArray, type PubSub } from 'type-graphql';
import { features } from '../features.ts';
import { IGNORES_IDEMPOTENCY_KEY } from '../api/ignores-idempotency-key.ts';
import { resolving } from '../core/tracing-channels.ts';
import { NodeResolver } from './node.resolver.ts';

type ResolverClass = new () => object;

// type-graphql asks for it where there are subscriptions. Ours follow the database, and publish nothing.
const NO_TOPICS: PubSub = { publish: refuseTopic, subscribe: refuseTopic };
type Resolve = GraphQLFieldResolver<unknown, unknown>;

/** The executable schema: the resolvers of all features, and `node`. */
export async function makeSchema(): Promise<GraphQLSchema> {
  const resolvers: NonEmptyArray<ResolverClass> = [NodeResolver, ...features.flatMap(({ resolvers: own = [] }) => [...own])];
  // Input is checked by the services, which both doors go through.
  const schema = await buildSchema({ resolvers, validate: false, pubSub: NO_TOPICS });
  describe(schema.getQueryType(), 'What can be read.');
  describe(
    schema.getMutationType(),
    `What can be done. The fields of one request run one after another. A POST with one mutation and the header \`Idempotency-Key\` is executed once: for a day, the same request is answered as the first time. ${namesOfIgnoring(schema)} ignore the header.`,
  );
  describe(schema.getSubscriptionType(), 'What can be listened to, by WebSocket or server-sent events: one of these in an operation.');
  for (const type of [schema.getQueryType(), schema.getMutationType()]) if (type) timeFields(type);
  return schema;
}

function namesOfIgnoring(schema: GraphQLSchema): string {
  const ignoring = Object.values(schema.getMutationType()?.getFields() ?? {}).filter(
    ({ extensions }) => extensions[IGNORES_IDEMPOTENCY_KEY],
  );
  return new Intl.ListFormat('en').format(ignoring.map(({ name }) => `\`${name}\``).toSorted());
}

/** The schema as text, in an order that does not depend on the code's. */
export function schemaText(schema: GraphQLSchema): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}

function refuseTopic(): never {
  throw new TypeError('There are no topics here');
}

// type-graphql has no place for these.
function describe(type: GraphQLObjectType | null | undefined, description: string): void {
  if (type) type.description = description;
}

// What is below them is resolved in batches, and much of it from what is there.
function timeFields(type: GraphQLObjectType): void {
  for (const definition of Object.values(type.getFields())) {
    const { name, resolve } = definition;
    if (resolve) definition.resolve = timed(`${type.name}.${name}`, resolve);
  }
}

function timed(field: string, resolve: Resolve): Resolve {
  return (...args) => resolving.tracePromise(async () => resolve(...args), { field });
}
