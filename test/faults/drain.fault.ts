import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { freePort, stopServer, type RunningServer } from '../support/process.ts';
import { countOf, startLoad } from '../support/open-load.ts';
import { mixedLoad, shopRequests } from '../support/shop-load.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { portOf, makeDatabase, QUIET, startShop } from './place.ts';

const ROUNDS = 20;
const SHORT_ROUNDS = 3;
const RATE = 200;
const CONNECTIONS = 20;
const SHUTDOWN_TIMEOUT_SECONDS = 10;

export const drain: Fault = {
  name: 'drain',
  promise:
    'On SIGTERM under load, every request on an open connection gets a response, /readyz returns 503 at once, and the process exits with 0. A second signal makes it exit with 1.',
  on: ['embedded', 'postgresql'],
  async run(context) {
    const { env } = await makeDatabase(context, QUIET);
    const rounds = context.short ? SHORT_ROUNDS : ROUNDS;
    const seen = { answered: 0, closing: 0, slowest: 0, readiness: 0 };
    for (let round = 0; round < rounds; round++) {
      const server = await startShop(context, { ...env, METRICS_PORT: String(await freePort()) });
      const watch = await watchOver(server);
      const parts = mixedLoad(await shopRequests(server.url));
      const running = startLoad({
        port: portOf(server),
        parts,
        rate: RATE,
        connections: CONNECTIONS,
        stopsListening: true,
        seconds: 60,
      });
      await running.begun;
      await setTimeout(500 + Math.random() * 500);
      const begun = performance.now();
      server.child.kill('SIGTERM');
      const readiness = await watch.drained();
      seen.readiness = Math.max(seen.readiness, performance.now() - begun);
      assert.deepEqual(readiness, { status: 503, connection: 'close' });
      const { code, stderr } = await server.ended;
      const ms = performance.now() - begun;
      running.stop();
      const loaded = await running.done;
      assert.deepEqual([code, stderr], [0, '']);
      assert.ok(
        ms <= SHUTDOWN_TIMEOUT_SECONDS * 1000,
        `the process took ${ms.toFixed(0)} ms to end`,
      );
      assert.deepEqual([loaded.lost, loaded.unanswered], [0, 0], JSON.stringify(loaded));
      assert.equal(countOf(loaded, 200, 299), loaded.sent, JSON.stringify(loaded.answers));
      assert.ok(loaded.closing > 0);
      seen.answered += loaded.sent;
      seen.closing += loaded.closing;
      seen.slowest = Math.max(seen.slowest, ms);
    }
    await exitOnSecondSignal(await startShop(context, env));
    return {
      rounds,
      'answered under load': seen.answered,
      lost: 0,
      'answers with Connection: close': seen.closing,
      '/readyz 503 after at most': `${seen.readiness.toFixed(0)} ms`,
      'ended after at most': `${(seen.slowest / 1000).toFixed(1)} s (goal: ${SHUTDOWN_TIMEOUT_SECONDS} s)`,
    };
  },
};

// An incomplete request delays the exit until the shutdown timeout.
async function exitOnSecondSignal(server: RunningServer): Promise<void> {
  const { port, hostname } = new URL(server.url);
  const unfinished = request({
    port,
    hostname,
    method: 'POST',
    path: '/graphql',
    headers: { 'Content-Type': 'application/json', 'Content-Length': '9' },
  });
  unfinished.on('error', () => undefined);
  unfinished.write('{');
  const watch = await watchOver(server);
  server.child.kill('SIGTERM');
  await watch.drained();
  assert.equal(server.child.exitCode, null);
  // An earlier signal may be a duplicate of the first.
  await setTimeout(1_500);
  const { code } = await stopServer(server);
  assert.equal(code, 1);
}

interface Head {
  status: number;
  connection: string | undefined;
}

interface Watch {
  /** Waits until the server drains, and returns its response of /readyz. */
  drained(): Promise<Head>;
}

// Opens two connections in advance: a draining server accepts no new ones, and closes those that it
// has responded to.
async function watchOver({ url }: RunningServer): Promise<Watch> {
  const [live, ready] = [
    new Agent({ keepAlive: true, maxSockets: 1 }),
    new Agent({ keepAlive: true, maxSockets: 1 }),
  ];
  assert.equal((await headOf(`${url}/livez`, live)).status, 200);
  assert.equal((await headOf(`${url}/readyz`, ready)).status, 200);
  return {
    async drained() {
      await until(
        async () => (await headOf(`${url}/livez`, live)).connection === 'close',
        'the end of the connections',
      );
      return headOf(`${url}/readyz`, ready);
    },
  };
}

function headOf(url: string, agent: Agent): Promise<Head> {
  return new Promise((done, fail) => {
    request(url, { agent }, (res) => {
      res.resume();
      res.on('end', () =>
        done({ status: res.statusCode ?? 0, connection: res.headers.connection }),
      );
    })
      .on('error', fail)
      .end();
  });
}
