import { describe, expect, test } from '../support/jest.ts';
import { cli } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

// All else of the commands is tested in this process (support/command.ts).

const shop = useShop();

describe('the command line as a process', () => {
  test('reads a password from standard input, does what it is asked, says so on standard output, and ends with 0', async () => {
    expect(await cli(['user', 'create', 'carol'], workerDatabase(), 'carol has a secret\n')).toEqual({
      code: 0,
      stdout: 'User carol is there.\n',
      stderr: '',
    });
    const login = await shop.rest('POST', '/token', { form: { username: 'carol', password: 'carol has a secret' } });
    expect(login.status).toBe(200);
  });

  test('says on standard error why it is refused, and ends with 1', async () => {
    expect(await cli(['session', 'list', 'nobody'], workerDatabase())).toEqual({
      code: 1,
      stdout: '',
      stderr: 'There is no user nobody\n',
    });
  });

  test('--help says how it is used and ends with 0', async () => {
    expect(await cli(['--help'], {})).toEqual({ code: 0, stdout: expect.stringMatching(/^Usage: shopfront /), stderr: '' });
  });
});
