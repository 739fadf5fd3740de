import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';

interface Service {
  profiles: string[];
  image: string;
  build?: string;
  pull_policy?: string;
  environment?: Record<string, string>;
  networks?: Record<string, { ipv4_address: string } | undefined> | string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  ports?: string[];
  volumes?: string[];
  healthcheck?: { test: string[] };
}

interface Compose {
  services: Record<string, Service>;
  networks: { shop: { ipam: { config: [{ subnet: string; ip_range: string; gateway: string }] } } };
}

const compose = parse(await readFile('docker-compose.yml', 'utf8'), { merge: true }) as Compose;
const { services } = compose;
const ours = Object.entries(services).filter(([, { image }]) => image === 'shopfront');
const instances = ours.filter(([name]) => /^app-\d$/.test(name)).map(([, service]) => service);

test('a profile starts one instance, or several behind nginx with a replica', () => {
  const of = (profile: string) =>
    Object.keys(services).filter((name) => services[name]?.profiles.includes(profile));
  expect(of('one')).toEqual(['database', 'migrate', 'app']);
  expect(of('many')).toEqual([
    'database',
    'replica',
    'migrate',
    'app-1',
    'app-2',
    'app-3',
    'proxy',
  ]);
});

test.each(ours)(
  '%s has valid settings, and runs without privileges on a read-only file system',
  (_, service) => {
    const given = Object.entries(service.environment ?? {}).map(
      ([name, value]): [string, string] => [name, filled(value)],
    );
    expect(given.map(([name]) => name).filter((name) => !settingNames.includes(name))).toEqual([]);
    expect(() => readConfig(Object.fromEntries(given), () => undefined)).not.toThrow();
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(service.volumes).toBeUndefined();
  },
);

test('one service builds the image, and the others wait for it', () => {
  expect(ours.map(([name, { build, pull_policy }]) => [name, build, pull_policy])).toEqual([
    ['migrate', '.', undefined],
    ...['app', 'app-1', 'app-2', 'app-3'].map((name) => [name, undefined, 'never']),
  ]);
});

test('the stop grace period is longer than SHUTDOWN_TIMEOUT_SECONDS', () => {
  for (const [name, service] of ours.filter(([each]) => each !== 'migrate')) {
    const { shutdownTimeoutSeconds: shutdownSeconds } = configOf(service);
    expect({
      name,
      is: Number(/^(\d+)s$/.exec(service.stop_grace_period ?? '')?.[1]) > shutdownSeconds,
    }).toEqual({ name, is: true });
  }
});

test('only one port is published, on the loopback interface', () => {
  const open = Object.entries(services).flatMap(([name, { ports = [] }]) =>
    ports.map((port) => `${name} ${port}`),
  );
  expect(open).toEqual(['app 127.0.0.1:4000:4000', 'proxy 127.0.0.1:4000:80']);
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

function configOf({ environment = {} }: Service) {
  return readConfig(
    Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, filled(value)])),
    () => undefined,
  );
}

// Substitutes variables as compose does.
function filled(text: string): string {
  const given = new Map(['SIGNING_SECRET', 'POSTGRES_PASSWORD'].map((name) => [name, TEST_SECRET]));
  return text.replace(
    /\$\{(\w+)(?::[-?]([^}]*))?\}/g,
    (_, name: string, otherwise = '') => given.get(name) ?? String(otherwise),
  );
}

function addressOf({ networks }: Service): string {
  return (!Array.isArray(networks) && networks?.['shop']?.ipv4_address) || '';
}

// Removes addresses and comments. The rest of both files must be equal, because the tests run only
// one.
function withoutServers(text: string): string {
  return text.replace(/^ *(server|#) ?.*\n/gm, '').trim();
}
