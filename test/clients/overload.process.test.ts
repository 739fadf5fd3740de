import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { GRAPHQL_CLIENTS } from '../support/graphql-clients.ts';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

test('every client gets GraphQL errors from an overloaded server', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, MAX_REQUESTS_IN_FLIGHT: '1' });
    // A request that is never complete takes the only place.
    const held = connect(Number(new URL(server.url).port), '127.0.0.1');
    await once(held, 'connect');
    held.write('POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{');
    await until(async () => (await fetch(`${server.url}/users/me/`)).status === 503, 'the overload');
    const url = `${server.url}/graphql`;
    for (const [name, ask] of GRAPHQL_CLIENTS) {
      for (const query of ['{ me { username } }', 'mutation { logout { ended } }'])
        expect([name, await ask({ url, query })]).toEqual([name, { codes: ['UNAVAILABLE'] }]);
    }
    held.destroy();
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});
