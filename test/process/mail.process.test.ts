import { describe, expect, test } from '../support/jest.ts';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { withDataDir } from '../support/directories.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

const MAIL_FROM = 'Shop <shop@shop.example>';
const RESET = 'mutation { requestPasswordReset(user: "alice") }';

describe('without SMTP_URL, on the embedded default', () => {
  test('X2 a mail is written to a file that only its owner can read; the log has its path without the token', async () => {
    await withDataDir(async (DATA_DIR) => {
      const server = await startServer({ DATA_DIR, PASSWORD_RESET: 'on', LOG_LEVEL: 'info' });
      const directory = join(DATA_DIR, 'mail');
      const names = async () =>
        (await readdir(directory).catch((): string[] => [])).filter((name) =>
          name.endsWith('.txt'),
        );
      expect(await requestReset(server.url)).toEqual({ data: { requestPasswordReset: true } });
      await until(async () => (await names()).length === 1, 'the file of the mail');
      const [name = ''] = await names();
      const path = join(directory, name);
      const text = await readFile(path, 'utf8');
      const token = /\/shop#reset=([\w-]{43})$/m.exec(text)?.[1] ?? '';
      expect(text).toMatch(
        /^From: shopfront@localhost\nTo: alice@shop\.example\nSubject: Set a new password\n\n/,
      );
      expect([(await stat(directory)).mode & 0o777, (await stat(path)).mode & 0o777]).toEqual([
        0o700, 0o600,
      ]);
      const query = `mutation { resetPassword(token: "${token}", new: "alice-demo-2") { username } }`;
      expect(await requestReset(server.url, query)).toEqual({
        data: { resetPassword: { username: 'alice' } },
      });
      const { stderr, code } = await stopServer(server);
      expect(code).toBe(0);
      expect(stderr).toContain('"event":"mail.file","subject":"Set a new password"');
      expect(stderr).not.toContain('alice@shop.example');
      expect(token).toMatch(/^[\w-]{43}$/);
      expect(stderr).not.toContain(token);
    });
  });

  test('with registration and reset off, no mail is sent and no mail worker runs', async () => {
    await withDataDir(async (DATA_DIR) => {
      const server = await startServer({ DATA_DIR });
      expect(await requestReset(server.url)).toMatchObject({
        errors: [{ extensions: { code: 'FORBIDDEN' } }],
      });
      await stopServer(server);
      expect(await readdir(DATA_DIR)).not.toContain('mail');
    });
  });
});

test('a mail in flight is completed on SIGTERM', async () => {
  await withDataDir(async (DATA_DIR) => {
    let proceed = () => {};
    let state = 'idle';
    const smtp = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      onMailFrom: (_address, _session, callback) => {
        state = 'begun';
        proceed = callback;
      },
      onData: (stream, _session, callback) => {
        stream.resume().once('end', () => {
          state = 'arrived';
          callback();
        });
      },
    });
    const port = await freePort();
    await new Promise<void>((done) => smtp.listen(port, '127.0.0.1', done));
    const server = await startServer({
      DATA_DIR,
      PASSWORD_RESET: 'on',
      SMTP_URL: `smtp://127.0.0.1:${port}`,
      MAIL_FROM,
    });
    await requestReset(server.url);
    await until(() => state === 'begun', 'the mail');
    const ended = stopServer(server);
    proceed();
    expect([await ended, state]).toEqual([
      expect.objectContaining({ code: 0, stderr: '' }),
      'arrived',
    ]);
    await new Promise<void>((done) => smtp.close(done));
  });
});

async function requestReset(url: string, query = RESET): Promise<unknown> {
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return answer.json();
}
