import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { command } from '../support/command.ts';
import { makeDatabase, TEST_SECRET } from '../support/databases.ts';
import { startServer, stopServer } from '../support/process.ts';
import { bearer, create, openSession, post } from '../support/shopper.ts';
import { querySql } from '../support/sql.ts';

/** A new schema lacks the right that those of new databases have. */
const REOPEN =
  'drop schema public, pgboss cascade; create schema public; grant usage on schema public to public';
const MAIL = {
  PASSWORD_RESET: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
};

test('docs/security.md, operator checklist 6: a server whose user owns no table serves writes, logouts and mails', async () => {
  const name = `shopfront_app_${process.pid}`;
  const database = await makeDatabase(name);
  const url = new URL(database.env.DATABASE_URL);
  const owner = { ...database.env, SIGNING_SECRET: TEST_SECRET, HOST: '127.0.0.1' };
  const [, recipe = ''] =
    /^```sql\n(create role .*?)^```/ms.exec(await readFile('docs/security.md', 'utf8')) ?? [];
  const [before = '', after = ''] = recipe
    .replaceAll('shopfront_app', name)
    .replace("'…'", "'secret'")
    .split(/^-- npm run migrate.*$/m);
  try {
    await querySql(url.href, REOPEN);
    await querySql(url.href, before);
    expect((await command(['migrate'], owner)).code).toBe(0);
    await querySql(url.href, after);
    await command(['seed'], owner);
    [url.username, url.password] = [name, 'secret'];
    const settings = { ...owner, DATABASE_URL: url.href, ...MAIL };
    const server = await startServer(settings);
    try {
      const token = await bearer(server.url);
      expect((await create(server.url, token, '5901234123457')).status).toBe(201);
      const key = await openSession(server.url);
      const out = await post(`${server.url}/session/logout`, { session_key: key });
      expect(out.status).toBe(200);
      const query = 'mutation { requestPasswordReset(user: "alice") }';
      const mail = await post(`${server.url}/graphql`, { query });
      expect(JSON.parse(mail.text)).toEqual({ data: { requestPasswordReset: true } });
    } finally {
      await stopServer(server);
    }
    await expect(querySql(url.href, 'update audit_entry set action = action')).rejects.toThrow(
      'permission denied',
    );
    await expect(querySql(url.href, 'create table other ()')).rejects.toThrow('permission denied');
  } finally {
    await database.drop();
    await querySql(owner.DATABASE_URL.replace(/[^/]*$/, 'postgres'), `drop role if exists ${name}`);
  }
});
