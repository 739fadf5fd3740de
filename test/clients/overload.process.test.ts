import { isDeepStrictEqual } from 'node:util';
import { expect, test } from '../support/jest.ts';
import { keepBusy } from '../support/busy.ts';
import { withDataDir } from '../support/directories.ts';
import { GRAPHQL_CLIENTS } from '../support/graphql-clients.ts';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

test('every client gets GraphQL errors from an overloaded server', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, MAX_REQUESTS_IN_FLIGHT: '1' });
    const endLoad = keepBusy(server.url);
    const url = `${server.url}/graphql`;
    for (const [name, query] of GRAPHQL_CLIENTS) {
      for (const operation of ['{ me { username } }', 'mutation { logout { ended } }'])
        await until(
          async () =>
            isDeepStrictEqual(await query({ url, query: operation }), { codes: ['UNAVAILABLE'] }),
          `a rejected request of ${name}`,
        );
    }
    await endLoad();
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});
