import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createClient, type Sink } from 'graphql-ws';
import {
  createOperationDescriptor,
  Environment,
  fetchQuery,
  Network,
  Observable,
  RecordSource,
  requestSubscription,
  Store,
  type ConcreteRequest,
  type FetchFunction,
  type GraphQLResponse,
  type Variables,
} from 'relay-runtime';
import { describe, expect, test } from '../support/jest.ts';
import { shell } from '../support/process.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

interface Catalogue {
  products: {
    edges: { node: { id: string; pk: string; name: string } }[];
    pageInfo: {
      hasNextPage: boolean;
      hasPreviousPage: boolean;
      startCursor: string;
      endCursor: string;
    };
  };
}

const shop = useShop();

// `npm run generators` installs the compiler of Relay, which writes the queries of documents.ts.
await mkdir('dist/test/clients/relay', { recursive: true });
const compiled = await shell(
  'cd test/clients/relay && ../generators/node_modules/.bin/relay-compiler',
  {},
);
if (compiled.code !== 0) throw new Error(compiled.stdout + compiled.stderr);
const [catalogueQuery, changesSubscription, productQuery] = (await Promise.all(
  ['CatalogueQuery', 'ChangesSubscription', 'ProductQuery'].map(async (name) => {
    const path = resolve(`dist/test/clients/relay/documents${name}.graphql.ts`);
    return ((await import(path)) as { default: ConcreteRequest }).default;
  }),
)) as [ConcreteRequest, ConcreteRequest, ConcreteRequest];

/** The network in the documentation of Relay. */
function fetchWith(token?: string): FetchFunction {
  return async ({ text: query }, variables) => {
    const response = await fetch(`${shop.url}/graphql`, {
      method: 'POST',
      headers: {
        Accept: 'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8',
        'Content-Type': 'application/json',
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query, variables }),
    });
    return (await response.json()) as GraphQLResponse;
  };
}

function environmentOf(network = Network.create(fetchWith())): Environment {
  return new Environment({ network, store: new Store(new RecordSource()) });
}

/** Sends a query and stores the response. */
function load(
  environment: Environment,
  query: ConcreteRequest,
  variables: Variables = {},
): Promise<unknown> {
  return fetchQuery(environment, query, variables).toPromise();
}

/** The data of a component with this query. */
function shown(
  environment: Environment,
  query: ConcreteRequest,
  variables: Variables = {},
): unknown {
  return environment.lookup(createOperationDescriptor(query, variables).fragment).data;
}

describe('a connection grows in the store', () => {
  const readAll = async (
    first: Variables,
    more: (page: Catalogue['products']['pageInfo']) => Variables | undefined,
  ) => {
    const environment = environmentOf();
    // Retained data stays in the store.
    environment.retain(createOperationDescriptor(catalogueQuery, first));
    await load(environment, catalogueQuery, first);
    const all = () => (shown(environment, catalogueQuery, first) as Catalogue).products;
    for (let next = more(all().pageInfo); next; next = more(all().pageInfo))
      await load(environment, catalogueQuery, next);
    return all().edges.map(({ node: { pk } }) => pk);
  };

  test('forward', async () => {
    const made = await shop.makeProducts(5);
    const read = await readAll({ first: 2 }, ({ hasNextPage, endCursor }) =>
      hasNextPage ? { first: 2, after: endCursor } : undefined,
    );
    expect(read).toEqual(made.map(({ pk }) => String(pk)));
  });
});

test('a product of a list is refetched by node(id:), and the list shows the new values', async () => {
  const { pk } = await shop.makeProduct({ name: 'Ink' });
  const environment = environmentOf();
  await load(environment, catalogueQuery, { first: 2 });
  const listed = () =>
    (shown(environment, catalogueQuery, { first: 2 }) as Catalogue).products.edges[0]?.node;
  await shop.sql(`update product set name = 'Black ink' where pk = ${pk}`);
  const id = listed()?.id;
  expect(await load(environment, productQuery, { id })).toEqual({
    node: { name: 'Black ink', price: 9.99 },
  });
  expect(listed()?.name).toBe('Black ink');
});

test('a subscription by graphql-ws changes the product in the store', async () => {
  const { pk } = await shop.makeProduct();
  const client = createClient({ url: `${shop.url.replace('http', 'ws')}/graphql` });
  const environment = environmentOf(
    Network.create(fetchWith(), ({ text: query, name: operationName }, variables) =>
      Observable.create((sink) =>
        client.subscribe({ operationName, query: query ?? '', variables }, sink as Sink),
      ),
    ),
  );
  await load(environment, catalogueQuery, { first: 2 });
  const subscription = requestSubscription(environment, {
    subscription: changesSubscription,
    variables: {},
  });
  let changes = 0;
  await until(async () => {
    await shop.sql(`update product set name = 'Change ${++changes}' where pk = ${pk}`);
    return (
      (
        shown(environment, catalogueQuery, { first: 2 }) as Catalogue
      ).products.edges[0]?.node.name.startsWith('Change') ?? false
    );
  }, 'the change in the store');
  subscription.dispose();
  await client.dispose();
});
