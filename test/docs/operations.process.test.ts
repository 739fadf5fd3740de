import { expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withDirectory } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const document = await readFile('docs/operations.md', 'utf8');

test.each([
  ['DATA_DIR', true],
  ['the default folder', false],
])(
  'docs/operations.md: a copy of the stopped embedded database in %s, with its secret, has the same data and tokens',
  async (_where, isSet) => {
    const commands = /^```sh\n(tar .*?)^```/ms.exec(document)?.[1] ?? '';
    await withDirectory(async (home) => {
      const [DATA_DIR, RESTORED_DIR] = [
        join(home, isSet ? 'elsewhere' : 'data'),
        join(home, 'restored'),
      ];
      const first = await startServer({ DATA_DIR });
      const { access_token: token } = (await (
        await fetch(`${first.url}/token`, {
          method: 'POST',
          body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
        })
      ).json()) as { access_token: string };
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      const body = JSON.stringify({ name: 'Ink', barcode: '5901234123457', price: 12.5 });
      const made = await fetch(`${first.url}/api/v1/shop/product/`, {
        method: 'POST',
        headers,
        body,
      });
      const product: unknown = await made.json();
      expect(made.status).toBe(201);
      await stopServer(first);

      await promisify(execFile)('bash', ['-euc', commands], {
        cwd: home,
        env: { ...process.env, DATA_DIR: isSet ? DATA_DIR : undefined, RESTORED_DIR },
      });

      const second = await startServer({ DATA_DIR: RESTORED_DIR });
      try {
        expect(
          await (await fetch(`${second.url}${made.headers.get('Location') ?? ''}`)).json(),
        ).toEqual(product);
        expect((await fetch(`${second.url}/users/me/`, { headers })).status).toBe(200);
      } finally {
        await stopServer(second);
      }
    });
  },
  120_000,
);
