import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run, startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { databaseProcessOf } from './place.ts';
import { probe } from './serving.ts';

const WITHIN_MS = 1_000;

export const twoProcesses: Fault = {
  name: 'two-processes',
  promise:
    'A second process on the same data directory exits at once with 1 and names the first, which is not affected. The lock of a killed process is taken over, even if another process has its id now.',
  on: ['embedded'],
  async run({ directory, short, atEnd }) {
    const env = { DATA_DIR: join(directory, 'data'), LOG_LEVEL: 'silent' };
    const first = await startServer(env);
    atEnd(() => stopServer(first));
    const tries = short ? 3 : 20;
    let slowest = 0;
    for (let count = 0; count < tries; count++) {
      // Once while the first process has no database process.
      if (count === 1) process.kill(await databaseProcessOf(env.DATA_DIR), 'SIGKILL');
      const begun = performance.now();
      const second = await run('main.js', [], { ...env, PORT: '0' });
      slowest = Math.max(slowest, performance.now() - begun);
      assert.equal(second.code, 1);
      assert.match(
        second.stderr,
        new RegExp(`^The data directory .* is in use by process ${first.child.pid}\\. `),
      );
    }
    while ((await probe(`${first.url}/api/v2/shop/products`)).status !== 200);
    assert.equal(first.child.exitCode, null);

    const lock = join(env.DATA_DIR, 'lock');
    const staleLock = await readFile(lock, 'utf8');
    await stopServer(first, 'SIGKILL');
    // The database process exits, too, and both leave the lock.
    await until(
      () => !isRunning((JSON.parse(staleLock) as { child: { pid: number } }).child.pid),
      'the exit of the database process',
    );
    assert.equal(await readFile(lock, 'utf8'), staleLock);
    await stopServer(await startServer(env));
    await writeFile(lock, staleLock.replaceAll(/"pid":\d+/g, `"pid":${process.pid}`));
    const next = await startServer(env);
    assert.equal((await stopServer(next)).code, 0);
    return {
      tries,
      'rejected after at most': `${Math.round(slowest)} ms`,
      'to be rejected within': `${WITHIN_MS} ms`,
      'stale locks taken over': 2,
    };
  },
};

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
