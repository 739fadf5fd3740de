import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { binaries, ownedDirectory, systemUser } from './postgresql.ts';
import { endProcess } from './process.ts';
import { querySql } from './sql.ts';
import { until } from './until.ts';

const execute = promisify(execFile);

const DEPLOY = join(import.meta.dirname, '../../../deploy/patroni');
/** Programs by the package of Debian that has them. */
const PROGRAMS = {
  patroni: 'patroni',
  'etcd-server': 'etcd',
  haproxy: 'haproxy',
  pgbouncer: 'pgbouncer',
};
const PASSWORDS = { superuser: 'super', replication: 'copy', restapi: 'control', shop: 'shop' };
/** Maximum time in ms for Patroni to answer. */
const TIMEOUT_MS = 1_000;
/** Ports below those that the system lends to outgoing connections, so that nodes can restart. */
const PORTS = { from: 20_000, to: 32_000 };

type State = 'STOP' | 'CONT' | 'KILL';

/** What Patroni reports of its node (`GET /patroni`). */
interface Report {
  timeline?: number;
  sync_standby?: boolean;
}

/** A PostgreSQL node under Patroni. */
export class PatroniNode {
  private patroni: ChildProcess | undefined;

  constructor(
    readonly name: string,
    /** Has the files of the node. */
    readonly directory: string,
    readonly port: number,
    readonly restPort: number,
  ) {}

  async start(): Promise<void> {
    const log = openSync(join(this.directory, 'patroni.log'), 'a');
    this.patroni = spawn('patroni', [join(this.directory, 'configuration')], {
      cwd: this.directory,
      stdio: ['ignore', log, log],
      ...(await systemUser()),
    });
  }

  get isRunning(): boolean {
    return this.patroni?.exitCode === null && this.patroni.signalCode === null;
  }

  /** Kills Patroni, and leaves PostgreSQL. */
  async killPatroni(): Promise<void> {
    await endProcess(this.patroni, 'SIGKILL');
  }

  /** Kills everything on the node. */
  async kill(): Promise<void> {
    await this.signalPostgres('KILL');
    await this.killPatroni();
  }

  /** Stops all processes of the node until `thaw`. */
  async freeze(): Promise<void> {
    this.patroni?.kill('SIGSTOP');
    await this.signalPostgres('STOP');
  }

  async thaw(): Promise<void> {
    this.patroni?.kill('SIGCONT');
    await this.signalPostgres('CONT');
  }

  /** Stops the processes that send the log to the standbys. */
  async holdReplication(): Promise<void> {
    const senders = await this.sql('select pid from pg_stat_replication');
    for (const { pid } of senders) process.kill(Number(pid), 'SIGSTOP');
  }

  /** Stops, or continues, the process that replays the log. */
  async signalReplay(state: State): Promise<void> {
    const found = await this.sql(`select pid from pg_stat_activity where backend_type = 'startup'`);
    for (const { pid } of found) process.kill(Number(pid), `SIG${state}`);
  }

  /** Ends Patroni and PostgreSQL for good. */
  async stop(): Promise<void> {
    await this.thaw();
    await this.kill();
  }

  async isPrimary(): Promise<boolean> {
    const answer = await this.get('/primary');
    return answer?.status === 200;
  }

  /** Undefined if Patroni does not answer. */
  async report(): Promise<Report | undefined> {
    const answer = await this.get('/patroni');
    return answer && ((await answer.json()) as Report);
  }

  /** Runs a statement as a superuser, in this database. */
  async sql(
    text: string,
    database = 'postgres',
    values: readonly unknown[] = [],
  ): Promise<Record<string, unknown>[]> {
    const connectionString = `postgresql://postgres:${PASSWORDS.superuser}@127.0.0.1:${this.port}/${database}`;
    const target = { connectionString, connectionTimeoutMillis: TIMEOUT_MS };
    return querySql(target, text, values);
  }

  private async get(path: string): Promise<Response | undefined> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return fetch(`http://127.0.0.1:${this.restPort}${path}`, { signal }).catch(() => undefined);
  }

  private async signalPostgres(state: State): Promise<void> {
    const file = join(this.directory, 'data/postmaster.pid');
    const [pid] = (await readFile(file, 'utf8').catch(() => '')).split('\n');
    if (!pid) return;
    const { stdout } = await execute('ps', ['-o', 'pid=', '--ppid', pid]).catch(() => ({
      stdout: '',
    }));
    // The main process would restart its children.
    for (const each of [pid, ...stdout.split('\n')].map(Number).filter(Boolean)) {
      try {
        process.kill(each, `SIG${state}`);
      } catch {
        // It has ended.
      }
    }
  }
}

/** Three nodes under Patroni with etcd, and HAProxy in front, configured by deploy/patroni. */
export interface PatroniCluster {
  nodes: readonly PatroniNode[];
  /** URLs of the database: through HAProxy, through HAProxy that leaves connections to an old primary alone, and of the replicas through HAProxy. */
  urls: { proxy: string; passiveProxy: string; replicas: string };
  /** Returns the primary that Patroni names, unless it is this node; undefined if there is none. */
  leader(but?: PatroniNode): Promise<PatroniNode | undefined>;
  /** Waits for a primary with two streaming standbys, one of them synchronous if configured. */
  settle(): Promise<void>;
  /** Runs `patronictl`. */
  control(...args: string[]): Promise<void>;
  /** Sets these keys of the dynamic configuration. */
  configure(settings: Readonly<Record<string, string | number | boolean>>): Promise<void>;
  startEtcd(): Promise<void>;
  killEtcd(): Promise<void>;
  stop(): Promise<void>;
}

/** Returns the packages of Debian that the cluster needs and that are not installed. */
export async function missingPackages(): Promise<string[]> {
  const checks = Object.entries(PROGRAMS).map(async ([name, program]) => {
    const found = await execute('sh', ['-c', `command -v ${program}`]).catch(() => undefined);
    return found ? [] : [name];
  });
  return (await Promise.all(checks)).flat();
}

/** Starts the cluster with its files in the directory, and an empty database. */
export async function startPatroni(directory: string): Promise<PatroniCluster> {
  await ownedDirectory(directory);
  await chmod(directory, 0o711);
  const ports = await stablePorts(11);
  const [
    etcdPort = 0,
    peerPort = 0,
    proxyPort = 0,
    passivePort = 0,
    replicasPort = 0,
    ...nodePorts
  ] = ports;
  const nodes: PatroniNode[] = [];
  for (const number of [1, 2, 3]) {
    const [port = 0, restPort = 0] = nodePorts.splice(0, 2);
    nodes.push(await makeNode(directory, `db-${number}`, port, restPort, etcdPort));
  }
  const configuration = join(nodes[0]?.directory ?? '', 'configuration');
  let etcd: ChildProcess | undefined;
  let haproxy: ChildProcess | undefined;
  let isSynchronous = true;
  const leader = async (but?: PatroniNode) => {
    for (const node of nodes) if (node !== but && (await node.isPrimary())) return node;
    return undefined;
  };
  const settle = () => until(() => isSettled(), 'a primary with two standbys');
  const isSettled = async () => {
    const standbys = await (
      await leader()
    )
      ?.sql(`select sync_state from pg_stat_replication where state = 'streaming'`)
      .catch(() => []);
    if (standbys?.length !== nodes.length - 1) return false;
    if (!isSynchronous) return standbys.every((each) => each['sync_state'] === 'async');
    const reports = await Promise.all(nodes.map((node) => node.report()));
    return reports.some((report) => report?.sync_standby);
  };
  const control = async (...args: string[]) => {
    await execute('patronictl', ['-c', configuration, ...args]);
  };
  const startEtcd = async () => {
    etcd = await spawnEtcd(join(directory, 'etcd'), etcdPort, peerPort);
  };
  const urlOf = (hosts: string) => `postgresql://shopfront:${PASSWORDS.shop}@${hosts}/shopfront`;
  const cluster: PatroniCluster = {
    nodes,
    urls: {
      proxy: urlOf(`127.0.0.1:${proxyPort}`),
      passiveProxy: urlOf(`127.0.0.1:${passivePort}`),
      replicas: urlOf(`127.0.0.1:${replicasPort}`),
    },
    leader,
    settle,
    control,
    async configure(settings) {
      if (typeof settings['synchronous_mode'] === 'boolean')
        isSynchronous = settings['synchronous_mode'];
      const pairs = Object.entries(settings).flatMap(([name, value]) => ['-s', `${name}=${value}`]);
      await control('edit-config', '--force', ...pairs);
    },
    startEtcd,
    killEtcd: () => endProcess(etcd, 'SIGKILL'),
    async stop() {
      await endProcess(haproxy, 'SIGTERM');
      await Promise.all(nodes.map((node) => node.stop()));
      await endProcess(etcd, 'SIGKILL');
    },
  };
  try {
    await startEtcd();
    const [first, ...others] = nodes;
    await first?.start();
    await until(async () => (await leader()) === first, 'the first node');
    for (const node of others) await node.start();
    haproxy = await spawnHaproxy(directory, { proxyPort, passivePort, replicasPort }, nodes);
    await settle();
    await first?.sql(`create role shopfront login password '${PASSWORDS.shop}'`);
    await first?.sql('create database shopfront owner shopfront');
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Writes the configuration of deploy/patroni, and the addresses and passwords of the node. */
async function makeNode(
  directory: string,
  name: string,
  port: number,
  restPort: number,
  etcdPort: number,
): Promise<PatroniNode> {
  const home = join(directory, name);
  const configuration = join(home, 'configuration');
  for (const path of [home, configuration]) await ownedDirectory(path);
  const rest = `127.0.0.1:${restPort}`;
  const own = {
    name,
    restapi: {
      listen: rest,
      connect_address: rest,
      authentication: { username: 'patroni', password: PASSWORDS.restapi },
    },
    etcd: { hosts: `127.0.0.1:${etcdPort}` },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: join(home, 'data'),
      bin_dir: await binaries(),
      pgpass: join(home, 'pgpass'),
      authentication: {
        superuser: { password: PASSWORDS.superuser },
        replication: { password: PASSWORDS.replication },
      },
      // Killed processes lose nothing that the system has.
      parameters: { unix_socket_directories: home, fsync: 'off', shared_buffers: '64MB' },
    },
  };
  await copyFile(join(DEPLOY, 'patroni.yml'), join(configuration, 'patroni.yml'));
  // Patroni merges the files of a directory in the order of their names.
  await writeFile(join(configuration, 'this-node.yml'), JSON.stringify(own));
  return new PatroniNode(name, home, port, restPort);
}

async function spawnEtcd(dataDir: string, port: number, peerPort: number): Promise<ChildProcess> {
  await ownedDirectory(dataDir);
  const [url, peers] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const options = {
    name: 'etcd',
    'enable-v2': 'true',
    'data-dir': dataDir,
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peers,
    'initial-advertise-peer-urls': peers,
    'initial-cluster': `etcd=${peers}`,
  };
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const child = spawn('etcd', args, { cwd: dataDir, stdio: 'ignore', ...(await systemUser()) });
  await until(async () => {
    requireRunning(child, 'etcd');
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    return answer?.status === 200;
  }, 'etcd');
  return child;
}

async function spawnHaproxy(
  directory: string,
  ports: { proxyPort: number; passivePort: number; replicasPort: number },
  nodes: readonly PatroniNode[],
): Promise<ChildProcess> {
  const text = await readFile(join(DEPLOY, 'haproxy.cfg'), 'utf8');
  const addressed = text.replace(/db-(\d)\.example:5432 check port 8008/g, (_, number: string) => {
    const { port: at, restPort } = nodes[Number(number) - 1] ?? {};
    return `127.0.0.1:${at} check port ${restPort}`;
  });
  const [primary] = /^listen primary\n(?: .*\n)+/m.exec(addressed) ?? [];
  if (!primary?.includes(' on-marked-down shutdown-sessions') || addressed.includes('.example'))
    throw new Error('deploy/patroni/haproxy.cfg has unexpected lines');
  const passive = primary
    .replace('listen primary', 'listen passive')
    .replace(' on-marked-down shutdown-sessions', '');
  const configuration = join(directory, 'haproxy.cfg');
  await writeFile(
    configuration,
    `${addressed}\n${passive.replace(':5000', `:${ports.passivePort}`)}`
      .replace(':5000', `:${ports.proxyPort}`)
      .replace(':5001', `:${ports.replicasPort}`),
  );
  const child = spawn('haproxy', ['-db', '-q', '-f', configuration], { stdio: 'ignore' });
  child.on('error', () => undefined);
  return child;
}

function requireRunning(child: ChildProcess, name: string): void {
  if (child.exitCode !== null) throw new Error(`${name} exited with ${child.exitCode}`);
}

/** Returns free ports that the system does not lend to outgoing connections. */
async function stablePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    found.add(port);
    server.close();
    await once(server, 'close');
  }
  return [...found];
}
