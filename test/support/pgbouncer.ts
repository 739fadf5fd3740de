import { spawn } from 'node:child_process';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownedDirectory, systemUser } from './postgresql.ts';
import { endProcess, freePort } from './process.ts';
import { querySql } from './sql.ts';
import { until } from './until.ts';

/** Name of the database in PgBouncer, which the server does not know. */
const ALIAS = 'alias';

/** PgBouncer in front of a server, in transaction mode. */
export interface Pooler {
  /** URL of the server's database through PgBouncer. */
  url: string;
  /** Returns the result of a SHOW command, such as `pools`. */
  show(what: string): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer with its files in the directory, a pool of this size to the server at this URL,
 * and further settings.
 */
export async function startPooler(
  directory: string,
  serverUrl: string,
  connections: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pooler> {
  const { hostname, port, pathname, username, password } = new URL(serverUrl);
  const own = await freePort();
  await mkdir(directory, { recursive: true });
  const configuration = join(directory, 'pgbouncer.ini');
  const users = join(directory, 'users.txt');
  await writeFile(users, `"${username}" "${password}"\n`);
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  await writeFile(
    configuration,
    `[databases]
${ALIAS} = host=${hostname} port=${port} dbname=${pathname.slice(1)}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
admin_users = ${username}
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 500
${lines.join('')}`,
  );
  const owner = await systemUser();
  await ownedDirectory(directory);
  for (const path of [users, configuration])
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(path, owner.uid, owner.gid);
  const child = spawn('pgbouncer', [configuration], { stdio: 'ignore', cwd: '/', ...owner });
  const urlOf = (database: string) => `postgresql://${username}@127.0.0.1:${own}/${database}`;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer exited with ${child.exitCode}`);
    return querySql(urlOf(ALIAS), 'select 1').then(
      () => true,
      () => false,
    );
  }, 'a response of PgBouncer');
  return {
    url: urlOf(ALIAS),
    show: (what) => querySql(urlOf('pgbouncer'), `show ${what}`),
    stop: () => endProcess(child),
  };
}
