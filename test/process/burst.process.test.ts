import { expect, test } from '../support/jest.ts';
import { demoUsers } from '../../src/features/demo-data.ts';
import { checkDigit } from '../../src/features/products/check-digit.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const CREATIONS = 500;

test('500 concurrent creations all get 201, on the default database', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    const authorization = `Bearer ${await tokenFrom(server.url)}`;
    const statuses = await Promise.all(
      Array.from({ length: CREATIONS }, async (_, index) => {
        const digits = `4${String(index).padStart(11, '0')}`;
        const answer = await fetch(`${server.url}/api/v1/shop/product/`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Authorization: authorization },
          body: JSON.stringify({
            name: 'Burst',
            barcode: digits + checkDigit(digits),
            price: 9.99,
          }),
        });
        await answer.text();
        return answer.status;
      }),
    );
    expect(statuses).toEqual(Array.from({ length: CREATIONS }, () => 201));
    await stopServer(server);
  });
});

async function tokenFrom(url: string): Promise<string> {
  const [{ username, password } = { username: '', password: '' }] = demoUsers;
  const body = new URLSearchParams({ username, password, scope: 'products:write' });
  const { access_token: token } = (await (
    await fetch(`${url}/token`, { method: 'POST', body })
  ).json()) as { access_token: string };
  return token;
}
