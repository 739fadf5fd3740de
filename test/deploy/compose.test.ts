import { expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';

const execute = promisify(execFile);

interface Service {
  image: string;
  entrypoint?: string[];
  environment?: Record<string, string>;
  networks?: Record<string, { ipv4_address: string } | undefined> | string[];
  stop_grace_period?: string;
  ports?: string[];
  volumes?: string[];
}

interface Compose {
  services: Record<string, Service>;
  networks: { shop: { ipam: { config: [{ subnet: string; ip_range: string; gateway: string }] } } };
  volumes: Record<string, null>;
}

/** Settings in the files of deploy/compose/secrets.sh. */
const SECRETS = {
  SIGNING_SECRET: TEST_SECRET,
  DATABASE_URL: 'postgresql://shopfront@database/shopfront',
};

const compose = parse(await readFile('docker-compose.yml', 'utf8'), { merge: true }) as Compose;
const { services } = compose;
const ours = Object.entries(services).filter(([, { image }]) => image === 'shopfront');
const instances = ours.filter(([name]) => name.startsWith('app')).map(([, service]) => service);

test('it starts without a variable, and no file has a secret', async () => {
  const text = await readFile('docker-compose.yml', 'utf8');
  expect(text).not.toMatch(/\$\{\w+(:?\?|\})/);
  expect([...text.matchAll(/\$\{(\w+):-\}/g)].map(([, name]) => name)).toEqual([
    'POSTGRES_PASSWORD',
    'SIGNING_SECRET',
  ]);
});

test('every mounted file and volume exists, and every image has a version', async () => {
  for (const [name, { image, volumes = [] }] of Object.entries(services)) {
    if (image !== 'shopfront')
      expect([name, image]).toEqual([name, expect.stringMatching(/:v?\d/)]);
    for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
      if (source.startsWith('./')) await stat(source);
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
  }
});

test.each(ours)(
  '%s has valid settings, and runs without privileges on a read-only file system',
  (_, service) => {
    const given = Object.keys(service.environment ?? {});
    expect(given.filter((name) => !settingNames.includes(name))).toEqual([]);
    expect(() => configOf(service)).not.toThrow();
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(service.volumes).toEqual(['secrets:/secrets:ro']);
  },
);

test('the stop grace period is longer than SHUTDOWN_TIMEOUT_SECONDS', () => {
  for (const [name, service] of ours.filter(([each]) => each !== 'migrate')) {
    const { shutdownTimeoutSeconds: shutdownSeconds } = configOf(service);
    expect({
      name,
      is: Number(/^(\d+)s$/.exec(service.stop_grace_period ?? '')?.[1]) > shutdownSeconds,
    }).toEqual({ name, is: true });
  }
});

test('ports are published on the loopback interface only, without the metrics', () => {
  const open = Object.entries(services).flatMap(([name, { ports = [] }]) =>
    ports.map((port) => `${name} ${port}`),
  );
  expect(open).toEqual([
    'app 127.0.0.1:4000:4000',
    'proxy 127.0.0.1:8080:80',
    'grafana 127.0.0.1:3000:3000',
  ]);
});

test('deploy/compose/secrets.sh generates secrets once, and prefers given ones', async () => {
  await withDirectory(async (directory) => {
    const first = await secretsOf(directory);
    expect(first.DATABASE_URL).toMatch(
      /^postgresql:\/\/shopfront:\S{64,}@database:5432\/shopfront$/,
    );
    expect(first.SIGNING_SECRET).toMatch(/^\w{64}$/);
    expect(await secretsOf(directory)).toEqual(first);
    await withDirectory(async (other) => expect(await secretsOf(other)).not.toEqual(first));

    const POSTGRES_PASSWORD = `it's "quoted" $and \\so on/@`;
    const SIGNING_SECRET = `it's "quoted" $and \\so on, old one`;
    const given = await secretsOf(directory, { POSTGRES_PASSWORD, SIGNING_SECRET });
    const passwords = [given.DATABASE_URL, given.DATABASE_REPLICA_URL].map((url) =>
      decodeURIComponent(new URL(url).password),
    );
    expect(passwords).toEqual([POSTGRES_PASSWORD, POSTGRES_PASSWORD]);
    expect(given.SIGNING_SECRET).toBe(SIGNING_SECRET);
    expect(await secretsOf(directory)).toEqual(given);
  });
});

test('nginx has the addresses of the instances, which trust only nginx and this host as proxies', async () => {
  const at = instances.map((service) => `${addressOf(service)}:${configOf(service).port}`);
  const upstream = await readFile('deploy/compose/instances.conf', 'utf8');
  expect([...upstream.matchAll(/^ {2}server (\S+)/gm)].map(([, server]) => server)).toEqual(at);
  const { proxy } = services;
  for (const instance of instances)
    expect(configOf(instance).trustProxy).toEqual([
      proxy && addressOf(proxy),
      compose.networks.shop.ipam.config[0].gateway,
    ]);
  const here = await readFile('deploy/nginx/instances.conf', 'utf8');
  expect(withoutServers(upstream)).toBe(withoutServers(here));
});

// Runs the script with a `chown` that does nothing, which needs no root, and returns what the
// entry points of the instances read.
async function secretsOf(directory: string, given: Record<string, string> = {}) {
  const { PATH = '' } = process.env;
  await writeFile(join(directory, 'chown'), '#!/bin/sh\n');
  await chmod(join(directory, 'chown'), 0o700);
  await execute('deploy/compose/secrets.sh', [directory], {
    env: { PATH: `${directory}:${PATH}`, ...given },
  });
  for (const name of ['shopfront.env', 'replica.env', 'database-password', 'signing-secret'])
    expect([name, (await stat(join(directory, name))).mode & 0o777]).toEqual([name, 0o600]);
  const [command = '', option = '', script = '', ...rest] = services['app-2']?.entrypoint ?? [];
  const print = `const { SIGNING_SECRET, DATABASE_URL, DATABASE_REPLICA_URL } = process.env;
    console.log(JSON.stringify({ SIGNING_SECRET, DATABASE_URL, DATABASE_REPLICA_URL }))`;
  const args = [script.replaceAll('/secrets', directory).replaceAll('$$', '$'), ...rest];
  const { stdout } = await execute(command, [option, ...args, '-e', print], { env: { PATH } });
  return JSON.parse(stdout) as typeof SECRETS & { DATABASE_REPLICA_URL: string };
}

function configOf({ environment = {} }: Service) {
  const given = Object.entries(environment).map(([name, value]) => [name, filled(value)]);
  return readConfig({ ...Object.fromEntries(given), ...SECRETS }, () => undefined);
}

// Substitutes unset variables as compose does.
function filled(text: string): string {
  return text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');
}

function addressOf({ networks }: Service): string {
  return (Array.isArray(networks) ? undefined : networks?.['shop']?.ipv4_address) ?? '';
}

// Removes addresses and comments. The rest of both files must be equal, because the tests run only
// one.
function withoutServers(text: string): string {
  return text.replace(/^ *(server|#) ?.*\n/gm, '').trim();
}
