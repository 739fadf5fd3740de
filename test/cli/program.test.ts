import { PassThrough } from 'node:stream';
import { describe, expect, test } from '../support/jest.ts';
import { command, startCommand } from '../support/command.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

describe('programs in one process', () => {
  test('concurrent programs have their own settings, streams and exit codes', async () => {
    const found = await Promise.all([
      command(['session', 'list', 'a'], { GRAPHQL_MAX_COST: 'much' }),
      command(['backup', '/proc/x'], { DATABASE_URL: 'postgresql://a@b/c' }),
      command(['session'], {}),
      command(['session', '--help'], {}),
    ]);
    expect(found).toEqual([
      {
        code: 78,
        stdout: '',
        stderr: expect.stringContaining('GRAPHQL_MAX_COST must be a whole number'),
      },
      { code: 1, stdout: '', stderr: expect.stringContaining('embedded database') },
      { code: 64, stdout: '', stderr: expect.stringMatching(/^Usage: shopfront session /) },
      { code: 0, stdout: expect.stringMatching(/^Usage: shopfront session /), stderr: '' },
    ]);
  });

  test('leave nothing open at their end, with their own database or an unreachable one', async () => {
    const before = process.getActiveResourcesInfo();
    await withDataDir(async (DATA_DIR) => {
      expect(await command(['session', 'list', 'nobody'], { DATA_DIR })).toMatchObject({ code: 1 });
      // The data directory is available again.
      expect(await command(['migrate'], { DATA_DIR })).toMatchObject({ code: 0 });
    });
    expect(
      await command(['migrate'], {
        DATABASE_URL: `postgresql://user@127.0.0.1:${await freePort()}/shop`,
      }),
    ).toMatchObject({ code: 1 });
    await until(() => openedSince(before).length === 0, 'the end of what was opened');
  });
});

describe('a password on a terminal', () => {
  const shop = useShop();

  const typed = async (first: string, second: string) => {
    // Like standard output, it is not ended by a pipe.
    const facts = { isTTY: true, _isStdio: true, columns: 80, rows: 24 };
    const [stdin, stdout] = [
      Object.assign(new PassThrough(), facts),
      Object.assign(new PassThrough(), facts),
    ];
    let shown = '';
    stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()));
    const { ended } = startCommand(['user', 'create', 'carol'], workerDatabase(), {
      stdin,
      stdout,
    });
    await until(() => shown.includes('Password'), 'the question');
    stdin.write(`${first}\r`);
    await until(() => shown.includes('Repeat password'), 'the second question');
    stdin.write(`${second}\r`);
    return { ...(await ended), shown };
  };

  test('is entered twice and never shown', async () => {
    const { code, stderr, shown } = await typed('carol has a secret', 'carol has a secret');
    expect([
      code,
      stderr,
      shown.includes('User carol created.\n'),
      shown.includes('secret'),
    ]).toEqual([0, '', true, false]);
    const login = await shop.rest('POST', '/token', {
      form: { username: 'carol', password: 'carol has a secret' },
    });
    expect(login.status).toBe(200);
  });

  test('is rejected if the two differ', async () => {
    expect(await typed('carol has a secret', 'carol has another')).toMatchObject({
      code: 1,
      stderr: 'The passwords do not match\n',
    });
    expect(await shop.sql('select username from "user"')).toEqual([]);
  });
});

/** Resources that were not open before: sockets, processes, timers. */
function openedSince(before: readonly string[]): string[] {
  const known = [...before];
  return process.getActiveResourcesInfo().filter((kind) => {
    const index = known.indexOf(kind);
    if (index >= 0) known.splice(index, 1);
    return index < 0 && kind !== 'Immediate';
  });
}
