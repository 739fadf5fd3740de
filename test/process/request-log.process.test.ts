import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const REQUESTS = 300;

test('every request has a line on standard error when the server has exited', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'info' });
    const ids: (string | null)[] = [];
    for (let number = 0; number < REQUESTS; number++) {
      const answer = await fetch(`${server.url}/api/v2/shop/products?page=${number + 1}`);
      ids.push(answer.headers.get('x-request-id'));
      await answer.arrayBuffer();
    }
    const { code, stderr } = await stopServer(server);
    const lines = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(code).toBe(0);
    expect(
      lines.filter(({ event }) => event === 'request').map(({ requestId }) => requestId),
    ).toEqual(ids);
  });
});
