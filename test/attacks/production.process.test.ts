import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

test('X3 the embedded default listens on loopback only, with the explorer, introspection and demo data', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    const ask = (query: string) =>
      fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query }),
      });
    expect(await (await ask('{ __schema { queryType { name } } }')).json()).toEqual({
      data: { __schema: { queryType: { name: 'Query' } } },
    });
    expect(await (await ask('{ products { totalCount } }')).json()).toEqual({
      data: { products: { totalCount: 1200 } },
    });
    const page = await fetch(`${server.url}/graphql`, { headers: { Accept: 'text/html' } });
    expect(page.headers.get('Content-Type')).toMatch(/^text\/html/);
    await stopServer(server);
  });
});
