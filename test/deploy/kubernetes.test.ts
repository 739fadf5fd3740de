import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Service } from 'kubernetes-models/v1/Service';
import { parseAllDocuments } from 'yaml';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const KINDS = { ConfigMap, Deployment, Job, NetworkPolicy, PodDisruptionBudget, Service };

const documents = parseAllDocuments(await readFile('deploy/kubernetes/shopfront.yaml', 'utf8'));
const objects = documents.map((document) => document.toJS() as { kind: keyof typeof KINDS });
const settings = new ConfigMap(only('ConfigMap')).data ?? {};
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

test('every setting exists, and secret ones are in the Secret', () => {
  expect(Object.keys(settings).filter((name) => !settingNames.includes(name))).toEqual([]);
  expect(Object.keys(settings).filter((name) => /SECRET|DATABASE_URL|PASSWORD/.test(name))).toEqual(
    [],
  );
  expect(container?.envFrom?.map((source) => Object.keys(source)[0])).toEqual([
    'configMapRef',
    'secretRef',
  ]);
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
  expect(images).toEqual([
    `registry.example/shopfront:${version}`,
    `registry.example/shopfront:${version}`,
  ]);
});

function only(kind: keyof typeof KINDS): object {
  const found = objects.filter((object) => object.kind === kind);
  if (!found[0] || found.length > 1) throw new Error(`Expected one ${kind}`);
  return found[0];
}
