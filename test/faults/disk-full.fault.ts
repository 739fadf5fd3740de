import assert from 'node:assert/strict';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { makePlace } from './place.ts';
import { probe, untilServing } from './serving.ts';
import { mountSmallDisk } from './small-disk.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const ROUNDS = 10;
const SHORT_ROUNDS = 1;
/** What is left free when the disk counts as full: for a few more pages of rows, and not for the next file of the log. */
const LEFT_BYTES = 200 * 1024;
/** So many writes are refused before there is space again. */
const REFUSED = 50;

/** Has a new file of the log begun, so that it is the tables that find no space. */
const NEW_LOG = 'select pg_switch_wal()';

/**
 * What finds no space first, the tables or the log of what is written. Without its log a PostgreSQL server ends, and waits for its
 * operator; the embedded database is started again.
 */
const SHORTAGES = { embedded: ['tables', 'log'], postgresql: ['tables'] } as const;

export const diskFull: Fault = {
  name: 'disk-full',
  promise:
    'On a full disk writes are answered 503 and reads go on, or 503 too; once there is space again everything that was acknowledged is there, and writes go on without a restart of the server.',
  rows: ['F8'],
  on: ['embedded', 'postgresql'],
  async run(world) {
    const disk = await mountSmallDisk(world);
    if (!disk) return { 'not tried': 'this user may not mount a small file system' };
    const place = await makePlace({ ...world, directory: disk.path });
    const server = await startServer(place.env);
    world.atEnd(() => stopServer(server));
    const writers = new Writers();
    const reads = new Map<number, number>();
    for (let round = 0; round < (world.short ? SHORT_ROUNDS : ROUNDS); round++) {
      for (const shortage of SHORTAGES[world.on]) {
        await writers.start(server.url);
        for (const tidy of ['checkpoint', NEW_LOG]) await place.sql(tidy);
        await disk.fill(LEFT_BYTES);
        // Best effort: there is no space for its answer.
        if (shortage === 'log') await place.sql(NEW_LOG).catch(() => undefined);
        const enough = (writers.statuses.get(503) ?? 0) + REFUSED;
        await until(async () => {
          const { status } = await probe(`${server.url}/api/v2/shop/products`);
          reads.set(status, (reads.get(status) ?? 0) + 1);
          return (writers.statuses.get(503) ?? 0) >= enough;
        }, 'writes to be refused');
        await disk.free();
        await untilServing(server.url);
        const more = writers.acknowledged.size + 1;
        await until(() => writers.acknowledged.size >= more, 'writes to go on');
        await writers.stop();
      }
    }
    assert.equal(server.child.exitCode, null);
    await writers.settle(server.url);
    await assertKept(place, server.url, writers);
    assertOnly(writers, [201, 503]);
    assert.deepEqual(
      [...reads.keys()].filter((status) => status !== 200 && status !== 503),
      [],
    );
    return {
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'writes answered 503': writers.statuses.get(503) ?? 0,
      'reads answered meanwhile': `${reads.get(200) ?? 0}`,
      'and refused with 503': reads.get(503) ?? 0,
    };
  },
};
