import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startPooler } from '../support/pgbouncer.ts';
import {
  missingPackages,
  startPatroni,
  type PatroniCluster,
  type PatroniNode,
} from '../support/patroni.ts';
import { prepare } from '../support/postgresql.ts';
import type { RunningServer } from '../support/process.ts';
import { querySql } from '../support/sql.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { until } from '../support/until.ts';
import type { Fault, FaultContext, Figures } from './fault.ts';
import { settingsFor, startShop, type ShopDatabase } from './place.ts';
import { page } from '../support/shopper.ts';
import { Readers } from './readers.ts';
import { assertCount, assertOnly, assertStored, findLost, Writers } from './writers.ts';

/** Number of rounds with synchronous replication. */
const ROUNDS = Number(process.env['CLUSTER_ROUNDS'] ?? 3);
const SWITCHOVERS = 6;
const SHORT_SWITCHOVERS = 2;
/** Per instance: all processes share this machine. */
const WRITERS = 2;
const READERS = 1;
/** Delay of each client after a response, in ms. */
const PAUSE_MS = 30;
/** Rows that each instance acknowledges before and after each fault. */
const ROWS = 10;
/** Maximum time in ms until each instance writes after a primary answers. */
const AGAIN_MS = 30_000;
/** Time in ms for which etcd is away: longer than the ttl of deploy/patroni. */
const AWAY_MS = 30_000;
/** Time in ms until all nodes have read a changed configuration: two turns of Patroni's loop. */
const CONFIGURED_MS = 12_000;
/** Time in ms for which replication is held before the primary is killed. */
const HELD_MS = 3_000;
/** Bytes of log that a standby may lack to be promoted: more than is written while it is held. */
const ASYNCHRONOUS_LAG = 100_000_000;
/** Maximum time in ms until HAProxy excludes a replica whose replay is stuck: see docs/scaling.md. */
const EXCLUDED_MS = 15_000;
/** Number of connections in a row that show which replicas HAProxy uses. */
const CONNECTIONS = 10;
const POOL_MAX = '4';
/** PgBouncer looks for the new primary as often as HAProxy. */
const POOLER = { server_login_retry: '1', server_connect_timeout: '2', query_wait_timeout: '5' };

/** A shop server under load, by the way to the database. */
interface Instance {
  way: string;
  server: RunningServer;
  writers: Writers;
  readers: Readers;
}

interface Scene {
  cluster: PatroniCluster;
  instances: readonly Instance[];
  database: ShopDatabase;
  /** Longest time in ms until each instance wrote after a primary answered, by fault. */
  slowest: Map<string, number>;
}

/** Injects the fault into the primary. Returns when another, or the same, primary is expected. */
type Step = (scene: Scene, primary: PatroniNode) => Promise<void>;

export const cluster: Fault = {
  name: 'cluster',
  promise:
    'On three nodes under Patroni, with etcd and HAProxy of deploy/patroni, instances survive switchovers, killed and frozen nodes, a killed Patroni and the loss of etcd: through HAProxy that closes connections to the old primary or leaves them, and through PgBouncer. Writes get 201 or 503, reads 200 or 503, and row counts are correct. With synchronous replication, no acknowledged write is lost. With asynchronous replication, some are. HAProxy excludes a replica whose replay is stuck, and includes it again.',
  on: ['postgresql'],
  missingPackages,
  async run(context) {
    const scene = await open(context);
    const excluded = await stopReplay(scene);
    await scene.cluster.configure({
      synchronous_mode: false,
      maximum_lag_on_failover: ASYNCHRONOUS_LAG,
    });
    await scene.cluster.settle();
    const asynchronous = await runMode(context, scene, 1, false);
    await scene.cluster.configure({ synchronous_mode: true });
    await scene.cluster.settle();
    const synchronous = await runMode(context, scene, context.short ? 1 : ROUNDS, true);
    for (const { server, way } of scene.instances)
      assert.equal(server.child.exitCode, null, `the instance by ${way} has ended`);
    return {
      ...excluded,
      ...synchronous,
      ...asynchronous,
      ...Object.fromEntries(
        [...scene.slowest].map(([step, ms]) => [
          `writes again after a primary answers, ${step}`,
          `at most ${Math.round(ms)} ms`,
        ]),
      ),
    };
  },
};

async function open(context: FaultContext): Promise<Scene> {
  const patroni = await startPatroni(join(context.directory, 'patroni'));
  context.atEnd(() => patroni.stop());
  const { urls } = patroni;
  await prepare({ url: urls.proxy }, TEST_SECRET);
  const database: ShopDatabase = {
    env: {},
    async sql(text, values) {
      const primary = await patroni.leader();
      if (!primary) throw new Error('There is no primary');
      return primary.sql(text, 'shopfront', values);
    },
  };
  await database.sql(`alter database shopfront set statement_timeout = '5s'`);
  const pooler = await startPooler(
    join(context.directory, 'pgbouncer'),
    urls.proxy,
    Number(POOL_MAX),
    POOLER,
  );
  context.atEnd(() => pooler.stop());
  const ways: [string, string, Record<string, string>][] = [
    ['HAProxy', urls.proxy, { DATABASE_REPLICA_URL: urls.replicas }],
    ['HAProxy that leaves connections', urls.passiveProxy, {}],
    ['PgBouncer', pooler.url, { DATABASE_POOLER: 'transaction' }],
  ];
  const instances: Instance[] = [];
  for (const [way, url, env] of ways) {
    const server = await startShop(context, {
      ...settingsFor({ url }),
      DATABASE_POOL_MAX: POOL_MAX,
      LOG_LEVEL: 'silent',
      ...env,
    });
    instances.push({ way, server, ...clientsOf(server) });
  }
  return { cluster: patroni, instances, database, slowest: new Map() };
}

function clientsOf({ url }: RunningServer): Pick<Instance, 'writers' | 'readers'> {
  return {
    writers: new Writers(WRITERS, PAUSE_MS),
    readers: new Readers(url, READERS, PAUSE_MS),
  };
}

/**
 * Stops the replay of a standby while rows are written. Returns how long HAProxy used it. Throws if
 * later reads lack committed rows.
 */
async function stopReplay({ cluster: patroni, instances, database }: Scene): Promise<Figures> {
  const primary = await patroni.leader();
  const standby = patroni.nodes.find((node) => node !== primary);
  const [reading] = instances;
  assert.ok(standby && reading);
  await reading.writers.start(reading.server.url);
  await until(async () => (await replicaPorts(patroni)).size === 2, 'connections to two replicas');
  await standby.signalReplay('STOP');
  const begun = performance.now();
  await until(async () => !(await replicaPorts(patroni)).has(standby.port), 'its exclusion');
  const ms = performance.now() - begun;
  assert.ok(ms <= EXCLUDED_MS, `a replica without replay was used for ${Math.round(ms)} ms`);
  for (let read = 0; read < 100; read++) {
    const [row] = await database.sql('select count(*)::int as count from product');
    await setTimeout(100);
    // Each request is unique, so that none is cached.
    const { text } = await page(reading.server.url, `?limit=1&offset=${read}`);
    const { count } = JSON.parse(text) as { count: number };
    assert.ok(count >= Number(row?.['count']), `${count} of ${String(row?.['count'])} products`);
  }
  await standby.signalReplay('CONT');
  await until(async () => (await replicaPorts(patroni)).has(standby.port), 'its inclusion');
  await reading.writers.stop();
  Object.assign(reading, clientsOf(reading.server));
  return { 'a replica whose replay was stuck was excluded after': `${Math.round(ms)} ms` };
}

/** Returns the ports of the servers to which HAProxy leads connections for replicas. */
async function replicaPorts({ urls }: PatroniCluster): Promise<Set<number>> {
  const ports = new Set<number>();
  for (let connection = 0; connection < CONNECTIONS; connection++) {
    const [row] = await querySql(urls.replicas, 'select inet_server_port() as port');
    ports.add(Number(row?.['port']));
  }
  return ports;
}

/** Injects all faults in each round. Returns the numbers of acknowledged and of lost rows. */
async function runMode(
  context: FaultContext,
  scene: Scene,
  rounds: number,
  isSynchronous: boolean,
): Promise<Figures> {
  const switchovers = context.short ? SHORT_SWITCHOVERS : SWITCHOVERS;
  const steps: [string, Step][] = [
    ...Array.from({ length: switchovers }, (): [string, Step] => ['switchover', switchOver]),
    ['node killed', killNode],
    ['Patroni killed', killPatroni],
    ['node frozen', freeze],
    ['replication held and node killed', holdAndKill],
    ['etcd away, failsafe_mode', loseEtcd],
    ['etcd away, no failsafe_mode', loseEtcdWithoutFailsafe],
  ];
  const mode = isSynchronous ? 'synchronous' : 'asynchronous';
  const found = { acknowledged: 0, lost: 0, twice: 0 };
  const begun = await timelineOf(scene);
  for (let round = 0; round < rounds; round++) {
    // Tokens expire after half an hour.
    for (const instance of scene.instances) {
      Object.assign(instance, clientsOf(instance.server));
      await instance.writers.start(instance.server.url);
      instance.readers.start();
    }
    for (const [name, step] of steps) await runStep(context, scene, name, step);
    const { lost, acknowledged, twice } = await assertRound(scene, isSynchronous);
    found.lost += lost;
    found.acknowledged += acknowledged;
    found.twice += twice;
    console.log(`      ${mode}, round ${round + 1}: acknowledged ${acknowledged}, lost ${lost}`);
  }
  return {
    [`promotions, ${mode}`]: (await timelineOf(scene)) - begun,
    [`rows acknowledged, ${mode}`]: found.acknowledged,
    [`rows lost, ${mode}`]: found.lost,
    [`primary keys given out twice, ${mode}`]: found.twice,
  };
}

async function runStep(
  context: FaultContext,
  scene: Scene,
  name: string,
  step: Step,
): Promise<void> {
  const { cluster: patroni, instances, slowest } = scene;
  await acknowledge(instances);
  const primary = await patroni.leader();
  assert.ok(primary, `no primary before: ${name}`);
  await step(scene, primary);
  const begun = performance.now();
  await acknowledge(instances);
  const ms = performance.now() - begun;
  slowest.set(name, Math.max(slowest.get(name) ?? 0, ms));
  assert.ok(context.short || ms <= AGAIN_MS, `${name}: writes again after ${Math.round(ms)} ms`);
  // Resumes a frozen node, and starts a killed one again.
  await primary.thaw();
  if (!primary.isRunning) await primary.start();
  await patroni.settle();
  await acknowledge(instances);
}

const switchOver: Step = async ({ cluster: patroni }, primary) => {
  await patroni.control('switchover', '--force');
  await untilReplaced(patroni, primary);
};

const killNode: Step = async ({ cluster: patroni }, primary) => {
  await primary.kill();
  await untilReplaced(patroni, primary);
};

/** PostgreSQL stays a primary without Patroni. */
const killPatroni: Step = async ({ cluster: patroni }, primary) => {
  await primary.killPatroni();
  await untilReplaced(patroni, primary);
};

const freeze: Step = async ({ cluster: patroni }, primary) => {
  await primary.freeze();
  await untilReplaced(patroni, primary);
};

/** Kills the primary after the standbys have received nothing for a while. */
const holdAndKill: Step = async ({ cluster: patroni }, primary) => {
  await primary.holdReplication();
  await setTimeout(HELD_MS);
  await primary.kill();
  await untilReplaced(patroni, primary);
};

const loseEtcd: Step = async ({ cluster: patroni, instances }, primary) => {
  await patroni.killEtcd();
  await setTimeout(AWAY_MS);
  await acknowledge(instances);
  assert.equal(await patroni.leader(), primary, 'the primary stays without etcd');
  await patroni.startEtcd();
};

const loseEtcdWithoutFailsafe: Step = async ({ cluster: patroni }) => {
  await patroni.configure({ failsafe_mode: false });
  await setTimeout(CONFIGURED_MS);
  await patroni.killEtcd();
  await until(async () => (await patroni.leader()) === undefined, 'the end of the primary');
  await patroni.startEtcd();
  await until(async () => (await patroni.leader()) !== undefined, 'a primary');
  await patroni.configure({ failsafe_mode: true });
};

async function untilReplaced(patroni: PatroniCluster, primary: PatroniNode): Promise<void> {
  await until(async () => (await patroni.leader(primary)) !== undefined, 'another primary');
}

/** Stops the clients. Returns the numbers of their rows. Throws if a status or count was wrong. */
async function assertRound(
  { instances, database }: Scene,
  isSynchronous: boolean,
): Promise<{ acknowledged: number; lost: number; twice: number }> {
  const found = { acknowledged: 0, lost: 0, twice: 0 };
  const barcodes = new Map<number, string>();
  await Promise.all(instances.flatMap(({ writers, readers }) => [writers.stop(), readers.stop()]));
  for (const { way, server, writers, readers } of instances) {
    await writers.resend(server.url);
    assertOnly(writers, [201, 503], way);
    readers.assertOnlyRejected(way);
    if (isSynchronous) await assertStored(database, server.url, writers);
    else await assertCount(database, server.url);
    found.acknowledged += writers.acknowledged.size;
    found.lost += (await findLost(database, writers)).length;
    for (const { pk, barcode } of writers.acknowledged.values()) {
      if (barcodes.has(pk)) found.twice++;
      barcodes.set(pk, barcode);
    }
  }
  if (isSynchronous) assert.equal(found.twice, 0, 'primary keys were given out twice');
  return found;
}

/** Waits until each instance has acknowledged more rows. */
async function acknowledge(instances: readonly Instance[]): Promise<void> {
  await Promise.all(instances.map(({ way, writers }) => writers.more(ROWS, way)));
}

/** Returns the timeline, which each promotion increases by one. */
async function timelineOf({ cluster: patroni }: Scene): Promise<number> {
  const report = await (await patroni.leader())?.report();
  return report?.timeline ?? 0;
}
