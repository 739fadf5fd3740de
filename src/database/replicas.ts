import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { gauges } from '../core/metrics.ts';
import { sql, type Statements } from './sql.ts';
import { abilitiesOf, reachedAt } from './connection-options.ts';
import { Replica, type Mark } from './replica.ts';

/** How often the primary and each replica are asked how far they have come, in ms. */
const EVERY_MS = 250;
/** How long the end of the connections is waited for, in ms. */
const GOODBYE_MS = 1_000;

const PLACE = sql`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')`;

/** The replicas of DATABASE_REPLICA_URLS, watched. */
export interface Replicas {
  /** One that is no further behind than it may be, by turns; undefined where there is none. */
  choose(): Statements | undefined;
  close(): Promise<void>;
}

/**
 * Opens the replicas and watches how far each has come: what the primary's log held when it was asked is on a replica that has
 * replayed its log to there, so that each is known to be as of a certain time.
 */
export function openReplicas(config: Config, primary: Statements, log: Logger): Replicas {
  const marks: Mark[] = [];
  const mark = async (): Promise<void> => {
    const at = performance.now();
    const [row] = await primary.read(PLACE, true);
    marks.push({ at, place: Number(row?.[0]) });
    while (marks[0] && marks[0].at < at - config.replicaMaxLagMs) marks.shift();
  };
  const replicas = config.replicaUrls.map((url) => {
    // With its port, and without who signs in there.
    const { host } = new URL(url);
    const limits = {
      config: { ...reachedAt(config, url), max: config.poolMax },
      abilities: abilitiesOf(config),
      maxLagMs: config.replicaMaxLagMs,
    };
    return new Replica(host, limits, primary, log);
  });
  const ofEach = (read: (replica: Replica) => number) => () => Object.fromEntries(replicas.map((replica) => [replica.name, read(replica)]));
  gauges(
    'shopfront_replica_lag_seconds',
    'How far a replica is behind the primary at most.',
    'replica',
    ofEach((replica) => replica.lag()),
  );
  gauges(
    'shopfront_replica_serving',
    'Whether a replica is read from: 1, or 0 where it is left out.',
    'replica',
    ofEach((replica) => Number(replica.serves())),
  );
  const loops = [repeated(() => mark().catch(() => undefined)), ...replicas.map((replica) => repeated(() => replica.look(marks)))];
  let turn = 0;
  return {
    choose() {
      for (let tried = 0; tried < replicas.length; tried++) {
        const replica = replicas[(turn = (turn + 1) % replicas.length)];
        if (replica?.serves()) return replica;
      }
      return undefined;
    },
    async close() {
      await Promise.all(loops.map((end) => end()));
      // One that is silent does not say goodbye.
      await Promise.race([Promise.all(replicas.map((replica) => replica.close())), setTimeout(GOODBYE_MS, undefined, { ref: false })]);
    },
  };
}

// One after the other, however long each takes. Returns what ends it.
function repeated(work: () => Promise<void>): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  let running: Promise<void>;
  const go = async (): Promise<void> => {
    await work();
    if (!ended) timer = globalThis.setTimeout(() => (running = go()), EVERY_MS).unref();
  };
  running = go();
  return () => {
    ended = true;
    clearTimeout(timer);
    return running;
  };
}
