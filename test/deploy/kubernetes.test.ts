import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { parseEnv } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { GRAPHQL_LIMIT } from '../../src/http/body.ts';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

/** Interval of the pings of a subscription, in ms (docs/events.md). */
const PING_MS = 12_000;

const shop = useShop();

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

// `.ci/kustomize` checks the result.
test('settings and secrets are generated, so that a changed one replaces the instances', () => {
  expect(kustomization).toMatchObject({
    resources: ['shopfront.yaml'],
    configMapGenerator: [{ name: 'shopfront', envs: ['settings.env'] }],
    secretGenerator: [{ name: 'shopfront' }],
  });
  expect(kustomization).not.toHaveProperty('generatorOptions.disableNameSuffixHash');
  for (const one of [container, job?.template.spec?.containers[0]])
    expect(one?.envFrom).toEqual([
      { configMapRef: { name: 'shopfront' } },
      { secretRef: { name: 'shopfront' } },
    ]);
});

test('the Ingress has TLS, passes streams, and limits bodies and each address', () => {
  const ingress = new Ingress(only('Ingress'));
  const { tls, rules } = ingress.spec ?? {};
  const { host } = new URL(settings['PUBLIC_URL'] ?? '');
  expect(tls?.map(({ hosts }) => hosts)).toEqual([[host]]);
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

test('the ports match those of the server', () => {
  expect(container?.ports).toEqual([
    { name: 'http', containerPort: config.port },
    { name: 'metrics', containerPort: config.metricsPort },
  ]);
  expect(new Service(only('Service')).spec?.ports).toEqual([
    { name: 'http', port: 80, targetPort: 'http' },
  ]);
});

test('P10 each port is open to one namespace, and only single addresses are trusted proxies', () => {
  const { podSelector, policyTypes, ingress } = new NetworkPolicy(only('NetworkPolicy')).spec ?? {};
  expect(podSelector).toEqual(deployment?.selector);
  expect(policyTypes).toEqual(['Ingress']);
  expect(ingress?.map(({ ports }) => ports)).toEqual([[{ port: 'http' }], [{ port: 'metrics' }]]);
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

test('an update keeps the number of instances, and a disruption stops one at a time', () => {
  expect(deployment?.strategy).toEqual({
    type: 'RollingUpdate',
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
  });
  const budget = new PodDisruptionBudget(only('PodDisruptionBudget')).spec;
  expect(budget?.maxUnavailable).toBe(1);
  expect(deployment?.replicas).toBeGreaterThan(1);
  const labels = deployment?.template.metadata?.labels;
  expect([
    deployment?.selector.matchLabels,
    budget?.selector?.matchLabels,
    new Service(only('Service')).spec?.selector,
  ]).toEqual([labels, labels, labels]);
  // The service must not route to the migration.
  expect(job?.template.metadata?.labels).not.toEqual(labels);
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
  expect(confined?.containers.map(({ securityContext }) => securityContext)).toEqual([
    {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  ]);
  expect(
    confined?.containers.every(({ resources }) => resources?.limits?.['memory'] !== undefined),
  ).toBe(true);
});

test('the image has the version of package.json', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  const images = [container, job?.template.spec?.containers[0]].map((each) => each?.image);
  const [{ name, newTag }] = kustomization.images;
  expect(images).toEqual([name, name]);
  expect(newTag).toBe(version);
});

function only(kind: keyof typeof KINDS): object {
  const found = objects.filter((object) => object.kind === kind);
  if (!found[0] || found.length > 1) throw new Error(`Expected one ${kind}`);
  return found[0];
}
