import { describe, expect, test } from '../support/jest.ts';
import { usernameForm } from '../../src/features/users/user.service.ts';
import { command } from '../support/command.ts';
import { PASSWORD, useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' });

const create = (username: string) =>
  command(['user', 'create', username], workerDatabase(), PASSWORD);
const signIn = async (username: string, password = PASSWORD) =>
  (await shop.rest('POST', '/token', { form: { username, password } })).status;
const stored = async () =>
  (await shop.sql('select username from "user" order by pk')).map(({ username }) => username);

describe('a new username', () => {
  test.each([
    ['surrounding blanks are removed', ' alice\u00a0\n', 'alice'],
    ['the case stays', 'Alice', 'Alice'],
    ['full-width letters become ASCII', 'ａｌｉｃｅ', 'alice'],
    ['invisible characters are removed', 'al\u00adice\u200b', 'alice'],
    ['marks are composed', 'Zoe\u0308', 'Zo\u00eb'],
    ['ASCII signs', "o'neil+shop@mail.example", "o'neil+shop@mail.example"],
    ['single spaces', 'Ada King', 'Ada King'],
    ['Greek', 'Αλίκη', 'Αλίκη'],
    ['Japanese', '山田たろうカナ', '山田たろうカナ'],
    ['Korean', '김鐵수', '김鐵수'],
    ['Hebrew with digits', 'אליס7', 'אליס7'],
    ['Hindi', 'ऐलिस', 'ऐलिस'],
  ])('%s: %j', async (_what, username, expected) => {
    expect(await create(username)).toEqual({
      code: 0,
      stdout: `User ${expected} created.\n`,
      stderr: '',
    });
    expect(await stored()).toEqual([expected]);
    expect(await signIn(expected)).toBe(200);
  });

  test.each([
    ['a control character', 'al\tice'],
    ['a lone mark', '\u0301'],
    ['nothing visible', '\u200b'],
    ['151 characters', 'a'.repeat(151)],
  ])('%s is rejected: %j', async (_what, username) => {
    expect(await create(username)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^username: [A-Z].*\n$/),
    });
    expect(await stored()).toEqual([]);
  });

  test.each(['Alice', 'ALICE', ' alice ', 'ａｌｉｃｅ'])(
    "one that has the form of a user's is a conflict: %j",
    async (username) => {
      await shop.makeUser({ username: 'alice' });
      expect(await create(username)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('already exists'),
      });
      expect(await stored()).toEqual(['alice']);
    },
  );

  test('of ten concurrent names of one form, one is stored', async () => {
    const names = ['alice', 'Alice', 'aLice', 'alIce', 'aliCe'].flatMap((name) => [
      name,
      ` ${name}`,
    ]);
    const results = await Promise.all(names.map(create));
    expect(results.filter(({ code }) => code === 0)).toHaveLength(1);
    expect(await stored()).toHaveLength(1);
  });

  test('the database and the server compare the same form', async () => {
    const names = [
      'Alice',
      ' ALICE ',
      'ａｌ\u200bice',
      'Zoe\u0308',
      'ﬁona',
      'ẞ',
      '山田',
      "o'Neil",
      'İpek',
      'ΣΑΣ',
    ];
    const rows = await shop.sql(
      `select username_key(name) as key from (values ${names.map((name, at) => `(${at}, '${name.replace("'", "''")}')`).join()}) as given (at, name) order by at`,
    );
    expect(rows.map(({ key }) => key)).toEqual(names.map(usernameForm));
  });
});

describe('the username of a login', () => {
  test.each(['alice', 'Alice', 'ALICE', ' alice', 'alice ', 'alice\n', 'ａlice', 'a\u200blice'])(
    'is compared in the same form: %j',
    async (username) => {
      await shop.makeUser({ username: 'alice' });
      expect(await signIn(username)).toBe(200);
    },
  );

  test('a name that is stored is that user, whatever others there are', async () => {
    const names = ['alice', 'Alice', 'alice\u200b', ' alice', '🎁', '\u200b'];
    for (const [at, username] of names.entries())
      await shop.makeUser({ username, password: `password-${at}` });
    for (const [at, username] of names.entries())
      expect([username, await signIn(username, `password-${at}`)]).toEqual([username, 200]);
    expect(await signIn('ALICE', 'password-0')).toBe(401);
  });

  test('failures of all forms of a name count together', async () => {
    await shop.makeUser({ username: 'alice' });
    const statuses: number[] = [];
    for (const username of ['Alice', 'ALICE ', 'al\u200bice', 'alice'])
      statuses.push(await signIn(username, 'wrong password'));
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  test('commands find the user of a name in another form', async () => {
    await shop.makeUser({ username: 'alice' });
    expect(await command(['user', 'disable', ' Alice '], workerDatabase())).toMatchObject({
      code: 0,
    });
    expect(await command(['user', 'grant', 'ALICE', 'users:read'], workerDatabase())).toMatchObject(
      { code: 0 },
    );
    expect(await shop.sql('select username, disabled, scopes from "user"')).toEqual([
      { username: 'alice', disabled: true, scopes: ['users:read'] },
    ]);
  });
});
