import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { parse, parseAllDocuments } from 'yaml';

const text = await readFile('deploy/patroni/patroni.yml', 'utf8');
const patroni = parse(text) as {
  postgresql: { pg_hba: string[] };
};

test('deploy/patroni: connections need a password, which is not in the file', () => {
  expect(patroni.postgresql.pg_hba.map((line) => line.split(' ').at(-1))).toEqual([
    'peer',
    'scram-sha-256',
    'scram-sha-256',
  ]);
  expect(text).not.toMatch(/^\s*password:/m);
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
