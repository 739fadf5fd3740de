import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient } from 'graphql-ws';
import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';
import { bearer, create, newBarcode, parseProduct } from '../support/shopper.ts';
import { until } from '../support/until.ts';

const CREATED =
  'subscription ($after: String) { productChanged(after: $after, kinds: [CREATED]) { cursor pk } }';

interface Request {
  query: string;
  variables: Record<string, unknown>;
}
interface Sink {
  next(result: { data?: unknown }): void;
  error(error: unknown): void;
  complete(): void;
}

test.each([
  [
    'graphql-ws',
    (url: string, mayRetry: Promise<void>) =>
      createWsClient({ url: url.replace('http', 'ws'), retryWait: () => mayRetry }),
  ],
  [
    'graphql-sse',
    (url: string, mayRetry: Promise<void>) => createSseClient({ url, retry: () => mayRetry }),
  ],
])(
  '%s reconnects after a restart of the server and misses no change',
  async (_name, createClient) => {
    await withDataDir(async (DATA_DIR) => {
      const env = { DATA_DIR, PORT: String(await freePort()) };
      const before = await startServer(env);
      const { promise: mayRetry, resolve: retry, reject } = Promise.withResolvers<void>();
      const client = createClient(`${before.url}/graphql`, mayRetry);
      const received: string[] = [];
      let after: string | undefined;
      const request: Request = {
        query: CREATED,
        // Clients read the request again whenever they connect.
        get variables() {
          return { after };
        },
      };
      const sink: Sink = {
        next({ data }) {
          const { cursor, pk } = (data as { productChanged: { cursor: string; pk: string } })
            .productChanged;
          received.push(pk);
          after = cursor;
        },
        error: reject,
        complete: () => reject(new Error('The subscription has ended')),
      };
      client.subscribe(request, sink);

      const created: string[] = [];
      const token = await bearer(before.url);
      const createOne = async () => {
        const { pk } = parseProduct(await create(before.url, token, newBarcode()));
        created.push(String(pk));
      };
      const createUntilReceived = () => {
        const { length } = received;
        return until(async () => {
          await createOne();
          return received.length > length;
        }, 'a change');
      };
      await createUntilReceived();
      await stopServer(before);

      const server = await startServer(env);
      for (let count = 0; count < 3; count++) await createOne();
      retry();
      await mayRetry;
      await createUntilReceived();
      const first = created.indexOf(received[0] ?? '');
      expect(received).toEqual(created.slice(first, first + received.length));
      void client.dispose();
      expect(await stopServer(server)).toMatchObject({ code: 0 });
    });
  },
);
