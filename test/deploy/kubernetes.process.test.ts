import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { GRAPHQL_LIMIT } from '../../src/http/body.ts';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

/** Interval of the pings of a subscription, in ms (docs/events.md). */
const PING_MS = 12_000;

const shop = useShop();

/** A model of `kubernetes-models`, which `npm run tools` installs. */
type Model = new (object: object) => { metadata: any; spec: any; validate(): void };

const require = createRequire(resolve('test/tools/package.json'));
const { Deployment } = models<'Deployment'>('apps/v1');
const { Job } = models<'Job'>('batch/v1');
const { Ingress, NetworkPolicy } = models<'Ingress' | 'NetworkPolicy'>('networking.k8s.io/v1');
const { PodDisruptionBudget } = models<'PodDisruptionBudget'>('policy/v1');
const { Service } = models<'Service'>('v1');
const KINDS = { Deployment, Ingress, Job, NetworkPolicy, PodDisruptionBudget, Service };

interface Kustomization {
  resources: string[];
  images: [{ name: string; newName: string; newTag: string }];
  configMapGenerator: [{ name: string; envs: string[] }];
  secretGenerator: [{ name: string; envs: string[] }];
}

const kustomization = parse(
  await readFile('deploy/kubernetes/kustomization.yaml', 'utf8'),
) as Kustomization;
const documents = parseAllDocuments(await readFile('deploy/kubernetes/shopfront.yaml', 'utf8'));
const objects = documents.map((document) => document.toJS() as { kind: keyof typeof KINDS });
const settings = parseEnv(await readFile('deploy/kubernetes/settings.env', 'utf8'));
const deployment = new Deployment(only('Deployment')).spec;
const job = new Job(only('Job')).spec;
const config = readConfig(
  { ...settings, DATABASE_URL: 'postgresql://db.example/shopfront', SIGNING_SECRET: TEST_SECRET },
  () => undefined,
);
const pod = deployment?.template.spec;
const container = pod?.containers[0];

test('every object is valid for Kubernetes', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  expect(objects.map(({ kind }) => kind).toSorted()).toEqual(Object.keys(KINDS));
  for (const { kind } of objects)
    expect(() => new KINDS[kind](only(kind)).validate()).not.toThrow();
});

test('every setting exists, and secret ones are in a file that is not in the repository', async () => {
  expect(Object.keys(settings).filter((name) => !settingNames.includes(name))).toEqual([]);
  expect(Object.keys(settings).filter((name) => /SECRET|DATABASE_URL|PASSWORD/.test(name))).toEqual(
    [],
  );
  expect(kustomization.secretGenerator[0].envs).toEqual(['secrets.env']);
  expect(await readFile('.gitignore', 'utf8')).toMatch(/^deploy\/kubernetes\/secrets\.env$/m);
  expect(await readFile('docs/operations.md', 'utf8')).not.toContain('--from-literal');
});

test('the Ingress has TLS, passes streams, and limits bodies and each address', () => {
  const ingress = new Ingress(only('Ingress'));
  const { tls, rules } = ingress.spec ?? {};
  const { host } = new URL(settings['PUBLIC_URL'] ?? '');
  expect(tls?.map(({ hosts }: any) => hosts)).toEqual([[host]]);
  expect(rules).toEqual([
    {
      host,
      http: {
        paths: [
          {
            path: '/',
            pathType: 'Prefix',
            backend: { service: { name: 'shopfront', port: { name: 'http' } } },
          },
        ],
      },
    },
  ]);
  const of = (name: string) =>
    ingress.metadata?.annotations?.[`nginx.ingress.kubernetes.io/${name}`] ?? '';
  for (const name of ['proxy-read-timeout', 'proxy-send-timeout'])
    expect(Number(of(name)) * 1_000).toBeGreaterThan(2 * PING_MS);
  expect(of('proxy-buffering')).toBe('off');
  expect(of('force-ssl-redirect')).toBe('true');
  expect(Number(/^(\d+)k$/.exec(of('proxy-body-size'))?.[1]) * 1_024).toBeGreaterThan(
    GRAPHQL_LIMIT,
  );
  expect(of('client-body-buffer-size')).toBe(of('proxy-body-size'));
  expect(Number(of('limit-connections'))).toBeGreaterThan(
    config.maxSubscriptionConnectionsPerAddress,
  );
  expect(Number(of('limit-rps'))).toBeGreaterThan(0);
});

test('P10 each port is open to one namespace, and only single addresses are trusted proxies', () => {
  const { podSelector, policyTypes, ingress } = new NetworkPolicy(only('NetworkPolicy')).spec ?? {};
  expect(podSelector).toEqual(deployment?.selector);
  expect(policyTypes).toEqual(['Ingress']);
  expect(ingress?.map(({ ports }: any) => ports)).toEqual([
    [{ port: 'http' }],
    [{ port: 'metrics' }],
  ]);
  for (const { from } of ingress ?? []) {
    expect(from).toEqual([
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': expect.any(String) } } },
    ]);
  }
  for (const address of settings['TRUST_PROXY']?.split(',') ?? ['none'])
    expect(isIP(address)).toBeGreaterThan(0);
});

test('startup and liveness probes use /livez, the readiness probe uses /readyz, and both exist', async () => {
  const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
  expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet)).toEqual([
    { path: '/livez', port: 'http' },
    { path: '/livez', port: 'http' },
    { path: '/readyz', port: 'http' },
  ]);
  for (const path of ['/livez', '/readyz'])
    expect(await shop.rest('GET', path)).toMatchObject({ status: 200 });
});

test('the termination grace period is longer than preStop and SHUTDOWN_TIMEOUT_SECONDS', () => {
  const preStopSeconds = container?.lifecycle?.preStop?.sleep?.seconds ?? 0;
  expect(preStopSeconds).toBeGreaterThan(0);
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(
    preStopSeconds + config.shutdownTimeoutSeconds,
  );
});

test.each([
  ['the server', pod],
  ['the migration', job?.template.spec],
])('%s runs without privileges on a read-only file system', (_, confined) => {
  expect(confined?.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(confined?.automountServiceAccountToken).toBe(false);
  expect(confined?.containers.map(({ securityContext }: any) => securityContext)).toEqual([
    {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  ]);
  expect(
    confined?.containers.every(({ resources }: any) => resources?.limits?.['memory'] !== undefined),
  ).toBe(true);
});

function models<Kind extends string>(group: string): Record<Kind, Model> {
  return require(`kubernetes-models/${group}`);
}

function only(kind: keyof typeof KINDS): object {
  const found = objects.filter((object) => object.kind === kind);
  if (!found[0] || found.length > 1) throw new Error(`Expected one ${kind}`);
  return found[0];
}
