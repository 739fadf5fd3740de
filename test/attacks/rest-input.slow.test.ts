import { connect } from 'node:net';
import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const ROUTES = [
  ['/token', FORM],
  ['/login', FORM],
  ['/session/login', JSON_TYPE],
  ['/session/logout', JSON_TYPE],
  ['/api/v2/auth/login', JSON_TYPE],
  ['/api/v1/shop/product/', JSON_TYPE],
  ['/graphql', JSON_TYPE],
] as const;
const SHORT_BODIES = ['Content-Length: 10\r\n\r\n{"', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{"'];

test('R22 a body shorter than its length is 408 after the request timeout, and the connection is closed', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    try {
      const body = new URLSearchParams({ username: 'alice', password: 'alice-demo-1' });
      const login = (await (
        await fetch(`${server.url}/token`, { method: 'POST', body })
      ).json()) as { access_token: string };
      const heads = ROUTES.map(([path, type]) =>
        [
          `POST ${path} HTTP/1.1`,
          'Host: shop',
          `Authorization: Bearer ${login.access_token}`,
          `Content-Type: ${type}`,
          '',
        ].join('\r\n'),
      );
      const port = Number(new URL(server.url).port);
      const answers = await Promise.all(
        heads.flatMap((head) => SHORT_BODIES.map((short) => untilClosed(port, head + short))),
      );
      expect(answers.map((answer) => answer.split('\r\n')[0])).toEqual(
        answers.map(() => 'HTTP/1.1 408 Request Timeout'),
      );
      expect((await fetch(`${server.url}/api/v2/shop/products`)).status).toBe(200);
    } finally {
      expect(await stopServer(server)).toMatchObject({ code: 0 });
    }
  });
});

/** Sends a request; returns the response when the server closes. */
function untilClosed(port: number, request: string): Promise<string> {
  return new Promise((done, fail) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    socket.on('close', () => done(answer)).on('error', fail);
  });
}
