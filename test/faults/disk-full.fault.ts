import assert from 'node:assert/strict';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { makeDatabase } from './place.ts';
import { probe, untilServing } from './serving.ts';
import { mountSmallDisk } from './small-disk.ts';
import { assertKept, Writers } from './writers.ts';

const ROUNDS = 10;
const SHORT_ROUNDS = 1;
/** Free bytes on a full disk: enough for a few pages of rows, not for the next WAL file. */
const FREE_BYTES = 200 * 1024;
/** Number of rejected writes before there is space again. */
const REJECTED_WRITES = 50;

/** Starts a new WAL file, so that the tables run out of space first. */
const NEW_WAL_FILE = 'select pg_switch_wal()';

/**
 * What runs out of space first, the tables or the WAL. Without WAL space, a PostgreSQL server stops
 * until an operator restarts it; the embedded database is restarted automatically.
 */
const SHORTAGES = { embedded: ['tables', 'log'], postgresql: ['tables'] } as const;

export const diskFull: Fault = {
  name: 'disk-full',
  promise:
    'On a full disk, writes return 503; reads succeed or return 503. When there is space again, all acknowledged writes are stored and writes succeed without a restart.',
  on: ['embedded', 'postgresql'],
  async run(context) {
    const disk = await mountSmallDisk(context);
    if (!disk) return { 'not tried': 'this user may not mount a small file system' };
    const database = await makeDatabase({ ...context, directory: disk.path });
    const server = await startServer(database.env);
    context.atEnd(() => stopServer(server));
    const writers = new Writers();
    const reads = new Map<number, number>();
    for (let round = 0; round < (context.short ? SHORT_ROUNDS : ROUNDS); round++) {
      for (const shortage of SHORTAGES[context.on]) {
        await writers.start(server.url);
        for (const tidy of ['checkpoint', NEW_WAL_FILE]) await database.sql(tidy);
        await disk.fill(FREE_BYTES);
        // May fail: there is no space for it.
        if (shortage === 'log') await database.sql(NEW_WAL_FILE).catch(() => undefined);
        const enough = (writers.statuses.get(503) ?? 0) + REJECTED_WRITES;
        await until(async () => {
          const { status } = await probe(`${server.url}/api/v2/shop/products`);
          reads.set(status, (reads.get(status) ?? 0) + 1);
          return (writers.statuses.get(503) ?? 0) >= enough;
        }, 'rejected writes');
        await disk.free();
        await untilServing(server.url);
        await writers.more(1);
        await writers.stop();
      }
    }
    assert.equal(server.child.exitCode, null);
    await assertKept(database, server.url, writers);
    assert.deepEqual(
      [...reads.keys()].filter((status) => status !== 200 && status !== 503),
      [],
    );
    return {
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'writes answered 503': writers.statuses.get(503) ?? 0,
      'reads answered meanwhile': `${reads.get(200) ?? 0}`,
      'and rejected with 503': reads.get(503) ?? 0,
    };
  },
};
