import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const OLD = 'an-old-secret-for-tests-of-more-than-32-bytes';
const NEW = 'the-new-secret-for-tests-of-more-than-32-bytes';

test('J36 each step of a rotation is a restart with other settings', async () => {
  await withDataDir(async (DATA_DIR) => {
    const statuses: number[][] = [];
    const tokens: string[] = [];
    for (const SIGNING_SECRET of [OLD, `${NEW}, ${OLD}`, NEW]) {
      const server = await startServer({ DATA_DIR, SIGNING_SECRET });
      const body = new URLSearchParams({ username: 'alice', password: 'alice-demo-1' });
      const login = await fetch(`${server.url}/token`, { method: 'POST', body });
      tokens.push(((await login.json()) as { access_token: string }).access_token);
      const requests = tokens.map((token) =>
        fetch(`${server.url}/users/me/`, { headers: { Authorization: `Bearer ${token}` } }),
      );
      statuses.push((await Promise.all(requests)).map(({ status }) => status));
      const { stdout, stderr } = await stopServer(server);
      for (const secret of [OLD, NEW]) expect(stdout + stderr).not.toContain(secret);
    }
    expect(statuses).toEqual([[200], [200, 200], [401, 200, 200]]);
  });
});
