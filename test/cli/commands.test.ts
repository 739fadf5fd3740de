import { beforeEach, describe, expect, test } from '../support/jest.ts';
import * as legacy from '../../src/features/rest-usage/rest-usage.service.ts';
import { command as run } from '../support/command.ts';
import type { ProcessResult } from '../support/process.ts';
import { PASSWORD, useShop, workerDatabase } from '../support/shop.ts';

const TOO_LONG = 'password: A password must have at most 72 bytes\n';

const shop = useShop();

const command = (args: string, input?: string): Promise<ProcessResult> =>
  run(args.split(' '), workerDatabase(), input);
const signIn = (username: string, password: string) =>
  shop.rest('POST', '/token', { form: { username, password } });

describe('user create', () => {
  test('creates a user who can sign in, with the password from standard input', async () => {
    expect(
      await command(
        'user create carol --email carol@shop.example --scope products:write blog:write',
        'carol has a secret\n',
      ),
    ).toEqual({
      code: 0,
      stdout: 'User carol created.\n',
      stderr: '',
    });
    expect((await signIn('carol', 'carol has a secret')).status).toBe(200);
    expect(await shop.sql('select email, scopes from "user"')).toEqual([
      { email: 'carol@shop.example', scopes: ['products:write', 'blog:write'] },
    ]);
  });

  test('rejects a taken name', async () => {
    await shop.makeUser({ username: 'carol' });
    expect(await command('user create carol', PASSWORD)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'User carol already exists\n',
    });
  });

  test.each([
    ['too short', 'seven77', 'password: A password must have at least 8 characters\n'],
    ['over 72 bytes, which bcrypt would cut', 'x'.repeat(73), TOO_LONG],
    ['over 72 bytes in 37 characters', `${'é'.repeat(36)}x`, TOO_LONG],
  ])('rejects a password that is %s, and stores nothing', async (_name, password, stderr) => {
    expect(await command('user create carol', password)).toEqual({ code: 1, stdout: '', stderr });
    expect(await shop.sql('select username from "user"')).toEqual([]);
  });
});

describe('user disable and enable', () => {
  test('disabling ends all sessions at once on a running server; enabling allows logins but restores no session', async () => {
    const { username } = await shop.makeUser();
    const token = (await signIn(username, PASSWORD)).body.access_token as string;
    expect(await command(`user disable ${username}`)).toMatchObject({
      code: 0,
      stdout: `User ${username} is disabled.\n`,
    });
    expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject({
      status: 400,
      body: { detail: 'Inactive user' },
    });
    expect(await command(`user enable ${username}`)).toMatchObject({
      code: 0,
      stdout: `User ${username} is enabled.\n`,
    });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(401);
    expect((await signIn(username, PASSWORD)).status).toBe(200);
  });
});

describe('user set-password', () => {
  test('sets it and ends the sessions of the user', async () => {
    const { username } = await shop.makeUser();
    const token = (await signIn(username, PASSWORD)).body.access_token as string;
    expect(await command(`user set-password ${username}`, 'another good one')).toMatchObject({
      code: 0,
      stdout: `User ${username} has a new password; sessions ended: 1.\n`,
    });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(401);
    expect((await signIn(username, PASSWORD)).status).toBe(401);
    expect((await signIn(username, 'another good one')).status).toBe(200);
  });
});

describe('user grant and revoke', () => {
  test('add and remove scopes', async () => {
    const { username } = await shop.makeUser({ scopes: ['blog:write'] });
    expect(await command(`user grant ${username} products:write users:read`)).toMatchObject({
      code: 0,
      stdout: `User ${username} holds blog:write, products:write, users:read.\n`,
    });
    expect(await command(`user grant ${username} users:read`)).toMatchObject({
      code: 0,
      stdout: `User ${username} holds blog:write, products:write, users:read.\n`,
    });
    expect(
      await command(`user revoke ${username} blog:write products:write users:read`),
    ).toMatchObject({
      code: 0,
      stdout: `User ${username} holds no scopes.\n`,
    });
  });
});

describe('session list and end', () => {
  test('list shows the open sessions, the latest first, and no key', async () => {
    const user = await shop.makeUser();
    const key = (
      await shop.rest('POST', '/session/login', {
        json: { username: user.username, password: PASSWORD },
        headers: { 'User-Agent': 'first' },
      })
    ).body.session_key as string;
    await shop.rest('POST', '/session/login', {
      json: { username: user.username, password: PASSWORD },
      headers: { 'User-Agent': 'second' },
    });
    const { code, stdout } = await command(`session list ${user.username}`);
    expect(code).toBe(0);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('  ').at(-1)),
    ).toEqual(['second', 'first']);
    expect(stdout).not.toContain(key);
  });

  test('end ends one session by its id, or all', async () => {
    const user = await shop.makeUser();
    for (let count = 0; count < 3; count++) await signIn(user.username, PASSWORD);
    const [first] = await shop.sql('select sid from session');
    const sid = String(first?.['sid']);
    expect(await command(`session end ${user.username} ${sid}`)).toMatchObject({
      code: 0,
      stdout: 'Sessions ended: 1.\n',
    });
    expect(await command(`session end ${user.username} ${sid}`)).toMatchObject({
      code: 1,
      stderr: `User ${user.username} has no open session ${sid}\n`,
    });
    expect(await command(`session end ${user.username} --all`)).toMatchObject({
      code: 0,
      stdout: 'Sessions ended: 2.\n',
    });
    expect(await shop.sql('select sid from session')).toEqual([]);
  });
});

describe('api-keys', () => {
  test('create prints only a key that is valid at once; list shows it without the key; revoke ends it', async () => {
    const { username } = await shop.makeUser({ username: 'carol', scopes: ['products:write'] });
    const made = await run(
      ['api-keys', 'create', username, 'till 7', '--scope', 'products:write', '--days', '30'],
      workerDatabase(),
    );
    expect(made).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^sk_[\w-]{43}\n$/),
      stderr: '',
    });
    const token = made.stdout.trim();
    expect((await shop.rest('GET', '/users/me/', { token })).body).toMatchObject({
      username: 'carol',
    });
    const { stdout } = await command('api-keys list carol');
    const [id = '', created = '', expires = '', used = '', scopes, name] = stdout
      .trim()
      .split('  ');
    expect([scopes, name]).toEqual(['products:write', 'till 7']);
    expect(Math.round((Date.parse(expires) - Date.parse(created)) / 86_400_000)).toBe(30);
    expect(Date.parse(used)).toBeGreaterThanOrEqual(Date.parse(created));
    expect(stdout).not.toContain(token);
    expect(await command(`api-keys revoke carol ${id}`)).toMatchObject({
      code: 0,
      stdout: 'API keys revoked: 1.\n',
    });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(401);
    expect(await command(`api-keys revoke carol ${id}`)).toMatchObject({
      code: 1,
      stderr: `User carol has no valid API key ${id}\n`,
    });
  });

  test('create rejects scopes that the user does not have, and stores nothing', async () => {
    await shop.makeUser({ username: 'carol', scopes: ['blog:write'] });
    expect(
      await command('api-keys create carol till --scope blog:write products:write users:read'),
    ).toEqual({
      code: 1,
      stdout: '',
      stderr: 'scopes: User carol does not have products:write, users:read\n',
    });
    expect(await shop.sql('select name from api_key')).toEqual([]);
  });

  test('revoke --all revokes all keys of one user', async () => {
    for (const name of ['carol', 'dan']) await shop.makeUser({ username: name });
    for (const name of ['carol', 'carol', 'dan']) await command(`api-keys create ${name} till`);
    expect(await command('api-keys revoke carol --all')).toMatchObject({
      code: 0,
      stdout: 'API keys revoked: 2.\n',
    });
    expect(await shop.sql('select username from api_key join "user" on pk = user_pk')).toEqual([
      { username: 'dan' },
    ]);
  });
});

describe('rest-usage report', () => {
  const V1 = 'GET /api/v1/shop/products';
  const V2 = 'GET /api/v2/shop/products';

  beforeEach(async () => {
    const days = (day: number) => new Date(Date.UTC(2027, 0, day));
    for (let call = 0; call < 3; call++) shop.calls.count(V1, 'till/1', '', days(1 + call));
    for (let call = 0; call < 2; call++) shop.calls.count(V2, 'till/1', 'bea', days(5));
    shop.calls.count(V1, 'app/2', 'bea', days(9));
    await legacy.store(shop.context(), shop.calls);
  });

  test('shows calls, times, endpoints, users and clients, the most calls first', async () => {
    const at = (day: number) => `2027-01-0${day}T00:00:00.000Z`;
    expect(await command('rest-usage report')).toEqual({
      code: 0,
      stdout: [
        `3  ${at(1)}  ${at(3)}  ${V1}  -  till/1`,
        `2  ${at(5)}  ${at(5)}  ${V2}  bea  till/1`,
        `1  ${at(9)}  ${at(9)}  ${V1}  bea  app/2`,
        '',
      ].join('\n'),
      stderr: '',
    });
  });

  test.each([
    ['--endpoint /api/v1/', [3, 1]],
    ['--since 2027-01-05', [2, 1]],
    ['--since 2027-01-06', [1]],
    ['--endpoint v1 --since 2027-01-04', [1]],
    ['--endpoint v_', []],
    ['--limit 2', [3, 2]],
  ])('%s filters', async (options, calls) => {
    const { code, stdout } = await command(`rest-usage report ${options}`);
    const found = stdout.split('\n').slice(0, -1);
    expect([code, found.map((line) => Number.parseInt(line))]).toEqual([0, calls]);
  });

  test('prints no terminal control sequences, whatever the names of clients are', async () => {
    shop.calls.count(V1, 'a\u001b[2Jb\u009b2J\u007f\r\n', '', new Date());
    await legacy.store(shop.context(), shop.calls);
    const { stdout } = await command('rest-usage report');
    expect(stdout).toContain('[2Jb');
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });
});

describe('rest-usage forget', () => {
  const forget = (client: string) => run(['rest-usage', 'forget', client], workerDatabase());
  const NONE = { code: 1, stdout: '', stderr: 'No calls recorded for a client with this name\n' };

  beforeEach(async () => {
    for (const client of ['till/1', 'till/10', 'TILL/1', '-', "a'b%"])
      shop.calls.count('GET /blog', client, '', new Date());
    shop.calls.count('POST /token', 'till/1', 'bea', new Date());
    await legacy.store(shop.context(), shop.calls);
  });

  const left = async () =>
    (await shop.sql('select client from rest_call order by client collate "C"')).map(
      ({ client }) => client,
    );

  test('deletes the records of the client of exactly this name; a later call is recorded again', async () => {
    expect(await forget('till/1')).toEqual({ code: 0, stdout: 'Lines deleted: 2.\n', stderr: '' });
    expect(await left()).toEqual(['-', 'TILL/1', "a'b%", 'till/10']);
    shop.calls.count('GET /blog', 'till/1', '', new Date());
    await legacy.store(shop.context(), shop.calls);
    expect(await shop.sql(`select calls from rest_call where client = 'till/1'`)).toEqual([
      { calls: 1 },
    ]);
  });

  test.each(['-', "a'b%"])('accepts the name %s literally', async (client) => {
    expect(await forget(client)).toMatchObject({ code: 0, stdout: 'Lines deleted: 1.\n' });
    expect(await left()).not.toContain(client);
  });

  test.each(['till', '%', 'x'.repeat(100_000)])(
    'rejects a name without a client (%.20s)',
    async (client) => {
      expect(await forget(client)).toEqual(NONE);
      expect(await left()).toHaveLength(6);
    },
  );
});

describe('seed', () => {
  const ADDED =
    'Demo data added. Users with public passwords: alice / alice-demo-1, bob / bob-demo-1, admin / admin-demo-1, zoe / zoe-demo-1.\n';
  const REJECTED = { code: 1, stdout: '', stderr: 'The database has users\n' };

  const counts = async () => {
    const [found] =
      await shop.sql(`select (select count(*)::int from "user") as users, (select count(*)::int from product) as products,
      (select count(*)::int from item) as items, (select count(*)::int from blog_entry) as entries`);
    return found;
  };

  test('adds the demo data to an empty database, and prints which passwords are public', async () => {
    expect(await command('seed')).toEqual({ code: 0, stdout: ADDED, stderr: '' });
    expect(await counts()).toEqual({ users: 124, products: 1200, items: 10, entries: 3 });
    expect((await signIn('bob', 'bob-demo-1')).status).toBe(200);
    expect(await signIn('zoe', 'zoe-demo-1')).toMatchObject({
      status: 400,
      body: { detail: 'Inactive user' },
    });
    expect((await signIn('customer001', 'customer001')).status).toBe(401);
  });

  test('rejects a database that has a user, and stores nothing', async () => {
    await shop.makeUser();
    expect(await command('seed')).toEqual(REJECTED);
    expect(await counts()).toEqual({ users: 1, products: 0, items: 0, entries: 0 });
  });

  test('changes no existing product', async () => {
    const { pk, barcode } = await shop.makeProduct({ barcode: '4006380000063' });
    expect(await command('seed')).toMatchObject({ code: 0 });
    expect(await shop.sql(`select pk::int from product where barcode = '${barcode}'`)).toEqual([
      { pk },
    ]);
    expect(await counts()).toEqual({ users: 124, products: 1200, items: 10, entries: 3 });
  });

  test('run twice concurrently, one adds the demo data and the other is rejected', async () => {
    const ended = await Promise.all([command('seed'), command('seed')]);
    expect(ended.filter(({ code }) => code === 0)).toHaveLength(1);
    expect(await counts()).toEqual({ users: 124, products: 1200, items: 10, entries: 3 });
  });
});

test.each([
  'user disable nobody',
  'user enable nobody',
  'user set-password nobody',
  'user grant nobody blog:write',
  'session list nobody',
  'session end nobody --all',
  'api-keys create nobody till',
  'api-keys list nobody',
  'api-keys revoke nobody --all',
])('%s ends with 1 and reports an unknown user', async (args) => {
  expect(await command(args, PASSWORD)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'User nobody does not exist\n',
  });
});

test('--help of every command and subcommand prints its usage and ends with 0', async () => {
  /** Returns the names of its subcommands. */
  const usageOf = async (...names: string[]): Promise<string[]> => {
    const { code, stdout, stderr } = await run([...names, '--help'], workerDatabase());
    const usage = `Usage: ${['shopfront', ...names].join(' ')} `;
    expect([code, stdout.slice(0, usage.length), stderr]).toEqual([0, usage, '']);
    const [, commands = ''] = stdout.split('Commands:\n');
    return [...commands.matchAll(/^ {2}(?!help)([a-z][\w-]*)/gm)].map(([, name = '']) => name);
  };
  const found: string[] = [];
  for (const name of await usageOf())
    for (const below of await usageOf(name)) {
      await usageOf(name, below);
      found.push(`${name} ${below}`);
    }
  expect(found.length).toBeGreaterThan(20);
});

test.each([
  'nonsense',
  'user nonsense',
  'session',
  'seed now',
  'user create carol secret-secret',
  'user create carol --password secret-secret',
  'user grant carol everything',
  'session end carol',
  'session end carol some-id --all',
  'api-keys create carol',
  'api-keys create carol till --scope everything',
  'api-keys create carol till --days 0',
  'api-keys create carol till --days 367',
  'api-keys revoke carol',
  'api-keys revoke carol some-id --all',
  'rest-usage report --since yesterday',
  'rest-usage report --since 2027-02-30',
  'rest-usage report --limit 0',
  'rest-usage report v1',
  'audit',
  'audit list --action product.painted',
  'audit list --since yesterday',
  'audit list --until 2027-02-30',
  'audit list --limit 0',
  'audit prune',
  'audit prune --before yesterday',
  'products import',
  'products import products.txt',
  'products import a.csv b.csv',
  'products import a.csv --format xml',
  'products export products.txt',
  'products export a.csv b.csv',
  'products export --format xml',
  'webhooks add',
  'webhooks add https://hooks.example/ --event everything',
  'webhooks remove',
  'webhooks deliveries --status lost',
  'webhooks deliveries --limit 0',
  'webhooks redeliver',
  'webhooks redeliver msg_1 --dead',
])('%s is wrong usage, and ends with 64', async (args) => {
  expect(await command(args)).toMatchObject({ code: 64, stdout: '' });
});
