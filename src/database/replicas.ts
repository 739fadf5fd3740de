import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { gauges } from '../core/metrics.ts';
import { sql, type Statements } from './sql.ts';
import { capabilitiesOf, connectionOptions } from './connection-options.ts';
import { Replica, type LagSample } from './replica.ts';

/** Delay between two reads of the log position of a server, in ms. */
const DELAY_MS = 250;
/** Maximum time to wait until the connections are closed, in ms. */
const CLOSE_TIMEOUT_MS = 1_000;

const POSITION = sql`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')`;

/** A replica without its primary. */
export interface LaggingReplica {
  statements: Statements;
  /** Maximum lag, in seconds. */
  lag: number;
}

/** The replicas of DATABASE_REPLICA_URLS. */
export interface Replicas {
  /** Returns the next usable replica, round robin; undefined if there is none. */
  choose(): Statements | undefined;
  /**
   * Returns a replica that was usable when the primary last responded, with its lag in seconds;
   * undefined if there is none, or after DATABASE_READS_WITHOUT_PRIMARY_SECONDS.
   */
  chooseWithoutPrimary(): LaggingReplica | undefined;
  close(): Promise<void>;
}

/**
 * Opens the replicas and monitors their lag. A replica that has replayed a sampled position of the
 * primary's log has all commits before the time of that sample.
 */
export function openReplicas(config: Config, primary: Statements, log: Logger): Replicas {
  const samples: LagSample[] = [];
  const takeSample = async (): Promise<void> => {
    const at = performance.now();
    const [row] = await primary.read(POSITION, true);
    samples.push({ at, position: Number(row?.[0]) });
    while (samples[0] && samples[0].at < at - config.databaseReplicaMaxLagMs) samples.shift();
  };
  const replicas = config.databaseReplicaUrls.map((url) => {
    // Host and port, without credentials.
    const { host } = new URL(url);
    const options = {
      config: { ...connectionOptions(config, url), max: config.databasePoolMax },
      capabilities: capabilitiesOf(config),
      maxLagMs: config.databaseReplicaMaxLagMs,
    };
    return new Replica(host, options, primary, log);
  });
  const ofEach = (read: (replica: Replica) => number) => () =>
    Object.fromEntries(replicas.map((replica) => [replica.name, read(replica)]));
  gauges(
    'shopfront_replica_lag_seconds',
    'Maximum lag of the replica behind the primary, in seconds.',
    'replica',
    ofEach((replica) => replica.lag()),
  );
  gauges(
    'shopfront_replica_usable',
    'Whether reads may use the replica: 1 or 0.',
    'replica',
    ofEach((replica) => Number(replica.isUsable())),
  );
  const loops = [
    repeat(() => takeSample().catch(() => undefined)),
    ...replicas.map((replica) => repeat(() => replica.checkLag(samples))),
  ];
  let index = 0;
  const next = (isUsable: (replica: Replica) => boolean): Replica | undefined => {
    for (let tried = 0; tried < replicas.length; tried++) {
      const replica = replicas[(index = (index + 1) % replicas.length)];
      if (replica && isUsable(replica)) return replica;
    }
    return undefined;
  };
  return {
    choose: () => next((replica) => replica.isUsable()),
    chooseWithoutPrimary() {
      const { at = -Infinity } = samples.at(-1) ?? {};
      if (performance.now() - at > config.databaseReadsWithoutPrimarySeconds * 1000)
        return undefined;
      const replica = next((candidate) => candidate.isUsableAsOf(at));
      return replica && { statements: replica.withoutPrimary, lag: replica.lag() };
    },
    async close() {
      await Promise.all(loops.map((end) => end()));
      // The connections of an unresponsive replica do not close.
      await Promise.race([
        Promise.all(replicas.map((replica) => replica.close())),
        setTimeout(CLOSE_TIMEOUT_MS, undefined, { ref: false }),
      ]);
    },
  };
}

// Repeats the work, with a delay after each run. Returns a function that ends the loop.
function repeat(work: () => Promise<void>): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  let running: Promise<void>;
  const run = async (): Promise<void> => {
    await work();
    if (!ended) timer = globalThis.setTimeout(() => (running = run()), DELAY_MS).unref();
  };
  running = run();
  return () => {
    ended = true;
    clearTimeout(timer);
    return running;
  };
}
