import { writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '../support/jest.ts';
import { accountOf, record } from '../../src/features/audit/audit.log.ts';
import { command as run } from '../support/command.ts';
import { withDirectory } from '../support/directories.ts';
import type { ProcessResult } from '../support/process.ts';
import { PASSWORD, useShop, workerDatabase } from '../support/shop.ts';
import { entriesAddedBy, lastChanges, trailOf } from '../support/trail.ts';

const shop = useShop();

const OPERATOR = `operator:${userInfo().username}`;

const command = (args: string, input?: string): Promise<ProcessResult> =>
  run(args.split(' '), workerDatabase(), input);

describe("the operator's commands", () => {
  test('on accounts record an entry each, with the name of the operator', async () => {
    await command('user create carol --scope products:write', PASSWORD);
    expect(await lastChanges(shop)).toEqual([
      { field: 'scopes', before: null, after: 'products:write' },
    ]);
    await command('user grant carol audit:read');
    await command('user grant carol audit:read');
    await command('user disable carol');
    await command('user enable carol');
    await command('user set-password carol', `${PASSWORD} too`);
    await command('user create carol', PASSWORD);
    const made = ['created', 'scopes_changed', 'disabled', 'enabled', 'password_changed'];
    expect(await trailOf(shop)).toEqual(
      made.map((what) => `${OPERATOR} account.${what} user:carol`),
    );
  });

  test('on sessions and API keys record one as well', async () => {
    const { username } = await shop.makeUser({ username: 'carol' });
    for (let time = 0; time < 2; time++)
      await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
    for (const name of ['till', 'stock']) await command(`api-keys create carol ${name}`);
    const [{ key_id: keyId } = {}] = await shop.sql(
      `select key_id from api_key where name = 'till'`,
    );
    const [{ sid } = {}] = await shop.sql('select sid from session');
    await command(`api-keys revoke carol ${String(keyId)}`);
    await command(`api-keys revoke carol ${String(keyId)}`);
    await command('api-keys revoke carol --all');
    await command(`session end carol ${String(sid)}`);
    await command('session end carol --all');
    expect(await lastChanges(shop)).toEqual([{ field: 'ended', before: null, after: '1' }]);
    expect(await trailOf(shop)).toEqual(
      [
        'api_key.created api_key:till',
        'api_key.created api_key:stock',
        'api_key.revoked api_key:till',
        'api_key.revoked api_key:stock',
        'account.sessions_ended user:carol',
        'account.sessions_ended user:carol',
      ].map((what) => `${OPERATOR} ${what}`),
    );
  });

  test('an import records an entry for each batch: the file name and the number of products', async () => {
    await withDirectory(async (folder) => {
      const file = join(folder, 'spring.csv');
      await writeFile(
        file,
        'name,barcode,price\nInk,5901234123457,12.50\nLamp,4006381333931,1\n,1,1\n',
      );
      const add = () => run(['products', 'import', file], workerDatabase());
      expect(
        await entriesAddedBy(shop, () =>
          run(['products', 'import', file, '--dry-run'], workerDatabase()),
        ),
      ).toEqual([]);
      expect(await entriesAddedBy(shop, add)).toEqual([`${OPERATOR} products.imported`]);
      expect(await lastChanges(shop)).toEqual(
        Object.entries({ file: 'spring.csv', created: '2', changed: '0' }).map(
          ([field, after]) => ({ field, before: null, after }),
        ),
      );
      expect(await entriesAddedBy(shop, add)).toEqual([]);
    });
  });

  test('the demo data records one entry', async () => {
    expect(await command('seed')).toMatchObject({ code: 0 });
    expect(await trailOf(shop)).toEqual([`${OPERATOR} demo.seeded`]);
  });
});

describe('audit list', () => {
  test('shows the latest first, a line each, without terminal control sequences', async () => {
    const as = await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
    await shop.sql(`insert into audit_entry (at, actor_kind, actor_name, action, subject_kind, subject_key, subject_name, changes)
      values ('2020-01-01Z', 'user', E'a\\x1b[2Jb', 'product.deleted', 'product', '7', 'Tray', '[{"field":"name","before":"Tray","after":null}]')`);
    await shop.graphql(
      'mutation { createProduct(input: { name: "Ink", barcode: "5901234123457", price: 1 }) { pk } }',
      {},
      { as },
    );
    await shop.graphql('mutation { updateProduct(pk: 1, input: { price: 2 }) { pk } }', {}, { as });
    await command('user disable ada');
    const { code, stdout } = await command('audit list');
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.every((line) => /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}/.test(line))).toBe(true);
    expect(lines.map((line) => line.split('  ').slice(1).join('  '))).toEqual([
      expect.stringMatching(/^operator:.+ {2}account\.disabled {2}user:\d+ ada$/),
      'user:ada  product.changed  product:1 Ink  price: 1.00 -> 2.00',
      'user:ada  product.created  product:1 Ink  name: Ink  barcode: 5901234123457  price: 1.00',
      'user:a?[2Jb  product.deleted  product:7 Tray  name: Tray',
    ]);
  });

  test('filters by actor, action and time', async () => {
    const ada = await shop.makeUser({ username: 'ada' });
    const { pk } = await shop.makeUser({ username: 'bea' });
    const at = (day: number) => ({
      ...shop.context(),
      operator: day > 1 ? 'olga' : 'otto',
      now: () => new Date(Date.UTC(2027, 0, day)),
    });
    await record(at(1), 'account.disabled', accountOf(ada));
    await record(at(2), 'account.enabled', accountOf(ada));
    await record(at(3), 'account.disabled', accountOf({ pk, username: 'b\u0085ea' }));
    const days = async (args: string) => {
      const { stdout } = await command(`audit list ${args}`.trim());
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => Number(line.slice(8, 10)));
    };
    expect(await days('')).toEqual([3, 2, 1]);
    expect(await days('--actor olga')).toEqual([3, 2]);
    expect(await days('--action account.disabled')).toEqual([3, 1]);
    expect(await days('--since 2027-01-02 --until 2027-01-03')).toEqual([2]);
    expect(await days('--limit 1')).toEqual([3]);
  });
});

describe('audit prune', () => {
  test('deletes entries older than a given day, and prints their number', async () => {
    const at = (day: number) => ({
      ...shop.context(),
      now: () => new Date(Date.UTC(2020, 0, day)),
    });
    for (const day of [1, 2, 3])
      await record(at(day), 'account.created', accountOf({ pk: day, username: `made${day}` }));
    expect(await command('audit prune --before 2020-01-03')).toEqual({
      code: 0,
      stdout: 'Entries deleted: 2.\n',
      stderr: '',
    });
    expect(await trailOf(shop)).toEqual([
      'anonymous account.created user:made3',
      `${OPERATOR} audit.pruned`,
    ]);
  });
});
