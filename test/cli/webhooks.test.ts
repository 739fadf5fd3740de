import { describe, expect, test } from '../support/jest.ts';
import { command as run } from '../support/command.ts';
import type { ProcessResult } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();

const command = (args: string, env: Record<string, string> = {}): Promise<ProcessResult> =>
  run(args.split(' '), { ...workerDatabase(), ...env });
const add = async (options = ''): Promise<string> => {
  const { stdout } = await command(`webhooks add https://hooks.example/${options}`);
  return stdout.split('  ')[0] ?? '';
};
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

describe('webhooks add and list', () => {
  test('add prints only an id and a secret; list shows the webhook without the secret', async () => {
    const args = [
      'webhooks',
      'add',
      'https://hooks.example/in',
      '--event',
      'product.created',
      'session.ended',
    ];
    const { code, stdout, stderr } = await run(args, workerDatabase());
    const [webhookId = '', secret = ''] = stdout.trimEnd().split('  ');
    expect([code, stderr, webhookId, secret]).toEqual([
      0,
      '',
      expect.stringMatching(UUID),
      expect.stringMatching(/^whsec_[\w+/]{43}=$/),
    ]);
    const listed = await command('webhooks list');
    expect(listed).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        new RegExp(
          `^${webhookId}  enabled  \\d{4}-\\S+Z  -  -  product\\.created,session\\.ended  https://hooks\\.example/in\n$`,
        ),
      ),
      stderr: '',
    });
    expect(listed.stdout).not.toContain(secret);
  });

  test('without --event it gets all events', async () => {
    await add();
    expect((await command('webhooks list')).stdout).toContain(
      '  product.created,product.changed,product.deleted,products.changed,session.ended  ',
    );
  });

  test('a forbidden address is rejected, and nothing is added', async () => {
    expect(await command('webhooks add http://127.0.0.1:9/')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'url: must begin with https://, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true\n',
    });
    expect(
      (
        await command('webhooks add http://127.0.0.1:9/', {
          WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
        })
      ).code,
    ).toBe(0);
    expect((await command('webhooks list')).stdout.split('\n')).toHaveLength(2);
  });
});

describe('webhook commands', () => {
  test('disable and enable', async () => {
    const webhookId = await add();
    expect(await command(`webhooks disable ${webhookId}`)).toEqual({
      code: 0,
      stdout: `Webhook ${webhookId} is disabled.\n`,
      stderr: '',
    });
    expect((await command('webhooks list')).stdout).toContain(`${webhookId}  disabled  `);
    expect(await command(`webhooks enable ${webhookId}`)).toEqual({
      code: 0,
      stdout: `Webhook ${webhookId} is enabled.\n`,
      stderr: '',
    });
    expect((await command('webhooks list')).stdout).toContain(`${webhookId}  enabled  `);
  });

  test('remove also deletes its pending deliveries', async () => {
    const [webhookId, other] = [await add(), await add()];
    for (const each of [webhookId, other]) await command(`webhooks test ${each}`);
    expect(await command(`webhooks remove ${webhookId}`)).toEqual({
      code: 0,
      stdout: `Webhook ${webhookId} is removed.\n`,
      stderr: '',
    });
    expect(
      await shop.sql('select job.name from pgboss.job join pgboss.queue on queue.name = job.name'),
    ).toEqual([{ name: `webhook/${other}` }]);
    expect(
      await shop.sql(`select name from pgboss.queue where name = 'webhook/${webhookId}'`),
    ).toEqual([]);
  });
});

test('webhooks remove completes a removal that was interrupted', async () => {
  const webhookId = await add();
  await shop.sql('delete from webhook');
  expect((await command(`webhooks remove ${webhookId}`)).code).toBe(0);
  expect(await shop.sql('select name from pgboss.queue')).toEqual([
    expect.not.stringContaining(webhookId),
  ]);
  expect((await command(`webhooks remove ${webhookId}`)).code).toBe(1);
});

describe('webhooks deliveries and redeliver', () => {
  test('`test` enqueues a message, and deliveries shows it, the latest first', async () => {
    const webhookId = await add();
    const made = [
      await command(`webhooks test ${webhookId}`),
      await command(`webhooks test ${webhookId}`),
    ].map(({ stdout }) => stdout.trim());
    for (const messageId of made) expect(messageId).toMatch(/^msg_[\da-f]{32}$/);
    const { stdout } = await command('webhooks deliveries');
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.split('  ')[0])).toEqual(made.toReversed());
    expect(lines[0]).toMatch(
      new RegExp(`^msg_\\S+  pending  webhook\\.test  \\S+Z  0  -  \\S+Z  ${webhookId}$`),
    );
  });

  test('redeliver sends one delivery again by its id, or all dead ones', async () => {
    const webhookId = await add();
    for (let time = 0; time < 3; time++) await command(`webhooks test ${webhookId}`);
    await shop.sql(`update pgboss.job set state = 'failed', completed_on = now()`);
    const [row] = await shop.sql('select id from pgboss.job limit 1');
    const messageId = `msg_${String(row?.['id']).replaceAll('-', '')}`;
    expect(await command(`webhooks redeliver ${messageId}`)).toEqual({
      code: 0,
      stdout: 'Messages to be sent again: 1.\n',
      stderr: '',
    });
    expect(await command(`webhooks redeliver ${messageId}`)).toEqual({
      code: 1,
      stdout: '',
      stderr: `Delivery ${messageId} not found, or still pending\n`,
    });
    expect((await command(`webhooks redeliver --dead --webhook ${webhookId}`)).stdout).toBe(
      'Messages to be sent again: 2.\n',
    );
  });
});
