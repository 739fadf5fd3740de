import { describe, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { parse, parseAllDocuments } from 'yaml';

const HOSTS = ['db-1.example', 'db-2.example', 'db-3.example'];

const text = await readFile('deploy/patroni/patroni.yml', 'utf8');
const patroni = parse(text) as {
  etcd: { hosts: string };
  bootstrap: { dcs: Record<string, unknown>; initdb: unknown[] };
  postgresql: { pg_hba: string[]; authentication: object };
};
const proxy = await readFile('deploy/patroni/haproxy.cfg', 'utf8');
const sections = new Map(
  proxy.split(/^(?=\w)/m).map((section) => [section.split('\n')[0] ?? '', section]),
);

describe('deploy/patroni', () => {
  test('acknowledged commits are on two nodes, and the primary stays without etcd', () => {
    expect(patroni.bootstrap.dcs).toMatchObject({
      synchronous_mode: true,
      failsafe_mode: true,
      postgresql: { use_pg_rewind: true },
    });
    expect(patroni.bootstrap.initdb).toContain('data-checksums');
  });

  test('the primary has time to notice that it has lost the lock', () => {
    const { ttl, loop_wait: wait, retry_timeout: retry } = patroni.bootstrap.dcs;
    expect(Number(wait) + 2 * Number(retry)).toBeLessThanOrEqual(Number(ttl));
  });

  test('connections need a password, which is not in the file', () => {
    expect(patroni.postgresql.pg_hba.map((line) => line.split(' ').at(-1))).toEqual([
      'peer',
      'scram-sha-256',
      'scram-sha-256',
    ]);
    expect(text).not.toMatch(/^\s*password:/m);
  });

  test('etcd and HAProxy have the same nodes', () => {
    expect(patroni.etcd.hosts).toBe(HOSTS.map((host) => `${host}:2379`).join());
    for (const name of ['listen primary', 'listen replicas']) {
      const servers = [...(sections.get(name) ?? '').matchAll(/^ +server \S+ (.*)$/gm)];
      expect(servers.map(([, server]) => server)).toEqual(
        HOSTS.map((host) => `${host}:5432 check port 8008`),
      );
    }
  });

  test('HAProxy checks each half second for the role and the lag, and closes connections to an old primary', () => {
    for (const [name, role] of [
      ['listen primary', '/primary'],
      ['listen replicas', '/replica?lag=16kB'],
    ]) {
      const section = sections.get(name ?? '');
      expect(section).toContain(`option httpchk OPTIONS ${role}\n`);
      expect(section).toContain('inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions\n');
      expect(section).toMatch(/^ +bind 127\.0\.0\.1:/m);
    }
  });
});

test('the manifest for CloudNativePG has three synchronous nodes, and excludes lagging replicas', async () => {
  const documents = parseAllDocuments(await readFile('deploy/cloudnative-pg/cluster.yaml', 'utf8'));
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  const [cluster, ...others] = documents.map((document) => document.toJS() as unknown);
  expect(cluster).toMatchObject({
    apiVersion: 'postgresql.cnpg.io/v1',
    kind: 'Cluster',
    metadata: { name: 'shopfront-db' },
    spec: {
      instances: 3,
      bootstrap: { initdb: { database: 'shopfront', owner: 'shopfront', encoding: 'UTF8' } },
      postgresql: { synchronous: { method: 'any', number: 1, dataDurability: 'required' } },
      probes: { readiness: { type: 'streaming', maximumLag: '1Mi' } },
    },
  });
  expect(others).toEqual([]);
});
