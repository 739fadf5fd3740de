import { createClient as urqlClient, fetchExchange, subscriptionExchange } from '@urql/core';
import { createClient, type Client, type ClientOptions, type Sink } from 'graphql-ws';
import { afterEach, expect, test } from '../support/jest.ts';
import { writeUntil } from '../support/events.ts';
import { openSession } from '../support/logins.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const CREATED =
  'subscription ($after: String) { productChanged(after: $after, kinds: [CREATED]) { cursor pk } }';

interface Created {
  productChanged: { cursor: string; pk: string };
}

const shop = useShop();
const clients: Client[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) void client.dispose();
});

function clientWith(options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ url: `${shop.url.replace('http', 'ws')}/graphql`, ...options });
  clients.push(client);
  return client;
}

test('graphql-ws ends a subscription with UNAUTHENTICATED when its token expires, and continues after the cursor with a new token', async () => {
  const { token, refreshToken } = await openSession(shop);
  let accessToken = token;
  const client = clientWith({
    connectionParams: () => ({ Authorization: `Bearer ${accessToken}` }),
  });
  const pks: string[] = [];
  let after: string | undefined;
  const receive = async (results: AsyncIterableIterator<{ data?: Created | null | undefined }>) => {
    for await (const { data } of results) {
      if (!data) continue;
      pks.push(data.productChanged.pk);
      after = data.productChanged.cursor;
    }
  };
  const createUntilMoreIsTold = () => {
    const { length } = pks;
    return until(async () => {
      await shop.makeProduct();
      return pks.length > length;
    }, 'a change');
  };
  const listening = receive(client.iterate<Created>({ query: CREATED }));
  listening.catch(() => undefined);
  await createUntilMoreIsTold();
  shop.advanceClock(3_600_000);
  await expect(listening).rejects.toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);

  await shop.makeProducts(2);
  const { body } = await shop.graphql(
    'mutation ($t: String!) { refresh(refreshToken: $t) { accessToken } }',
    { t: refreshToken },
  );
  accessToken = body.data.refresh.accessToken;
  receive(client.iterate<Created>({ query: CREATED, variables: { after } })).catch(() => undefined);
  await createUntilMoreIsTold();
  const created = await shop.sql(`select pk from product where pk >= ${pks[0]} order by pk`);
  expect(pks).toEqual(created.slice(0, pks.length).map(({ pk }) => String(pk)));
});

// As in the documentation of urql.
test.each<[string, () => Partial<Parameters<typeof urqlClient>[0]>]>([
  [
    'graphql-ws',
    () => {
      const socket = clientWith();
      const exchange = subscriptionExchange({
        forwardSubscription: ({ query = '', variables = {} }) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ query, variables }, sink as Sink),
          }),
        }),
      });
      return { exchanges: [fetchExchange, exchange] };
    },
  ],
  ['server-sent events', () => ({ exchanges: [fetchExchange], fetchSubscriptions: true })],
])('urql subscribes by %s', async (_transport, options) => {
  const client = urqlClient({ url: `${shop.url}/graphql`, exchanges: [], ...options() });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const subscription = client
    .subscription(CREATED, {})
    .subscribe(({ data, error }) => resolve(error ?? data));
  expect(await writeUntil(shop, promise)).toMatchObject({
    productChanged: { pk: expect.any(String) },
  });
  subscription.unsubscribe();
});
