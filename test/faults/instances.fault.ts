import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { startNginx, type Nginx } from '../support/nginx.ts';
import type { Cluster } from '../support/postgresql.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault, Figures } from './fault.ts';
import { openCluster, settingsFor } from './place.ts';
import {
  send,
  bearer,
  create,
  newBarcode,
  openSession,
  page,
  percentile,
  post,
  READER,
  signIn,
  parseProduct,
  WRITER,
} from '../support/shopper.ts';

const INSTANCES = 3;
const LOGIN_FAILURES = 20;
/**
 * Maximum time in ms until a commit is visible on every instance. The mechanism guarantees 50 ms.
 */
const VISIBLE_MS = 100;
/** Time in ms within which nginx detects the exit of an instance. */
const PROXY_RETRY_MS = 2_000;

interface Shops {
  nginx: Nginx;
  urls: readonly string[];
  token: Record<string, string>;
}

export const instances: Fault = {
  name: 'instances',
  promise:
    'Instances behind a proxy share sessions, logouts, login throttling, idempotency keys and new products. A killed instance loses no acknowledged write.',
  on: ['postgresql'],
  async run(context) {
    const { directory, short, atEnd } = context;
    const cluster = await openCluster(context, { max_connections: '200' });
    const ports = await Promise.all(Array.from({ length: INSTANCES }, freePort));
    const running = new Map<number, RunningServer>();
    const start = async (port: number): Promise<void> =>
      void running.set(port, await startServer(envOf(cluster, port)));
    atEnd(() => Promise.all([...running.values()].map((server) => stopServer(server, 'SIGKILL'))));
    await Promise.all(ports.map(start));
    await mkdir(join(directory, 'nginx'));
    const nginx = await startNginx(join(directory, 'nginx'), ports);
    atEnd(() => nginx.stop());
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const shops = { nginx, urls, token: await bearer(nginx.url) };

    const [victim = 0] = ports;
    const kill = () => stopServer(running.get(victim) as RunningServer, 'SIGKILL');
    return {
      ...(await logouts(shops, short ? 10 : 200)),
      ...(await keys(shops, cluster)),
      ...(await newProducts(shops, short ? 10 : 200)),
      ...(await killed(shops, cluster, victim, kill, () => start(victim), short ? 4_000 : 30_000)),
      ...(await wrongPasswords(shops, cluster, short ? 2 : 3)),
    };
  },
};

function envOf(cluster: Cluster, port: number): Record<string, string> {
  return {
    ...settingsFor(cluster),
    PORT: String(port),
    LOG_LEVEL: 'silent',
    TRUST_PROXY: '127.0.0.1',
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: String(LOGIN_FAILURES),
  };
}

/**
 * A session is valid on every instance until its logout is acknowledged, and on none afterwards.
 */
async function logouts({ nginx, urls }: Shops, times: number): Promise<Figures> {
  const ended: number[] = [];
  for (let time = 0; time < times; time++) {
    const key = await openSession(nginx.url);
    const me = (url: string) => send(`${url}/users/me/`, { headers: { 'X-SESSION-ID': key } });
    for (const url of urls) assert.equal((await me(url)).status, 200);
    const done = await post(`${urls[time % urls.length]}/session/logout`, { session_key: key });
    assert.equal(done.status, 200, done.text);
    const at = performance.now();
    const after = await Promise.all(urls.map(me));
    ended.push(performance.now() - at);
    assert.deepEqual(
      after.map(({ status }) => status),
      urls.map(() => 401),
    );
  }
  return {
    logouts: times,
    'of these effective everywhere for the next request': ended.length,
    'which took p99': percentile(ended, 0.99),
  };
}

/** Uses the same key a hundred times concurrently, then with other bodies. */
async function keys({ nginx, token }: Shops, cluster: Cluster): Promise<Figures> {
  const headers = { ...token, 'Idempotency-Key': 'a-hundred' };
  const barcode = newBarcode();
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => create(nginx.url, headers, barcode)),
  );
  assert.equal(
    new Set(answers.map(({ status, text }) => `${status} ${text}`)).size,
    1,
    answers[0]?.text,
  );
  assert.equal(answers[0]?.status, 201);
  const stored = await cluster.sql(`select 1 from product where barcode = '${barcode}'`);
  assert.equal(stored.length, 1);
  const others = await Promise.all(
    Array.from({ length: 30 }, () => create(nginx.url, headers, newBarcode())),
  );
  assert.deepEqual([...new Set(others.map(({ status }) => status))], [422]);
  return { 'one key a hundred times': `${answers.length} equal answers, ${stored.length} product` };
}

/** A cached page is refreshed on every instance after a commit on one. */
async function newProducts({ urls, token }: Shops, rounds: number): Promise<Figures> {
  const times: number[] = [];
  const countAt = async (url: string): Promise<number> =>
    (JSON.parse((await page(url)).text) as { count: number }).count;
  for (let round = 0; round < rounds; round++) {
    const before = await Promise.all(urls.flatMap((url) => [countAt(url), countAt(url)]));
    const made = await create(urls[round % urls.length] ?? '', token, newBarcode());
    const at = performance.now();
    assert.equal(made.status, 201, made.text);
    const count = Number(before[0]) + 1;
    const reads = urls.map(async (url) => {
      while ((await countAt(url)) < count)
        assert.ok(
          performance.now() - at < 10 * VISIBLE_MS,
          'an instance still returns a stale page',
        );
      times.push(performance.now() - at);
    });
    await Promise.all(reads);
    await setTimeout(Math.max(0, VISIBLE_MS - (performance.now() - at)));
    assert.deepEqual(
      await Promise.all(urls.map(countAt)),
      urls.map(() => count),
    );
  }
  return {
    'a new product is visible everywhere within p99': percentile(times, 0.99),
    'to be within': '50 ms',
  };
}

/** Kills an instance under load, and restarts it. */
async function killed(
  { nginx, token }: Shops,
  cluster: Cluster,
  port: number,
  kill: () => Promise<unknown>,
  start: () => Promise<void>,
  forMs: number,
): Promise<Figures> {
  const end = performance.now() + forMs;
  const acknowledged: string[] = [];
  const failures: { at: number; what: string }[] = [];
  let served = 0;
  const record = (status: number, good: number, what: string) => {
    served++;
    if (status !== good) failures.push({ at: performance.now(), what: `${what} ${status}` });
  };
  const reading = Array.from({ length: 8 }, async (_, client) => {
    for (let turn = client; performance.now() < end; turn += 8)
      record((await page(nginx.url, `?page=${1 + (turn % 100)}`)).status, 200, 'GET');
  });
  const writing = Array.from({ length: 4 }, async () => {
    while (performance.now() < end) {
      const barcode = newBarcode();
      const answer = await create(nginx.url, token, barcode);
      record(answer.status, 201, 'POST');
      if (answer.status === 201) acknowledged.push(parseProduct(answer).barcode);
    }
  });
  await setTimeout(forMs / 3);
  const killedAt = performance.now();
  await kill();
  await setTimeout(forMs / 3);
  await start();
  const before = (await nginx.requestCounts()).get(port) ?? 0;
  await Promise.all([...reading, ...writing]);
  const late = failures.filter(({ at }) => at < killedAt || at > killedAt + PROXY_RETRY_MS);
  assert.deepEqual(late.slice(0, 10), []);
  await until(async () => {
    await page(nginx.url);
    return ((await nginx.requestCounts()).get(port) ?? 0) > before;
  }, 'a request to the restarted instance');
  const stored = new Set(
    (await cluster.sql('select barcode from product')).map(({ barcode }) => barcode),
  );
  const lost = acknowledged.filter((barcode) => !stored.has(barcode));
  assert.deepEqual(lost, []);
  return {
    'requests while one was killed and started': served,
    'products acknowledged': acknowledged.length,
    lost: lost.length,
    'failed requests': failures.length,
    'the last of them after':
      failures.length === 0
        ? 'none'
        : `${Math.round(Math.max(...failures.map(({ at }) => at)) - killedAt)} ms`,
  };
}

/** Sends 200 wrong passwords concurrently to all instances, until the login is throttled. */
async function wrongPasswords(
  { nginx }: Shops,
  cluster: Cluster,
  bursts: number,
): Promise<Figures> {
  let rejected = 0;
  let attempts = 0;
  for (let burst = 0; burst < bursts; burst++) {
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => signIn(nginx.url, { ...READER, password: 'a guess' })),
    );
    attempts += answers.length;
    rejected += answers.filter(({ status }) => status === 401).length;
    assert.deepEqual(
      answers.filter(({ status }) => ![401, 429, 503].includes(status)),
      [],
    );
  }
  assert.equal(rejected, LOGIN_FAILURES);
  // The right password is throttled, too; other users are not.
  assert.equal((await signIn(nginx.url, READER)).status, 429);
  assert.equal((await signIn(nginx.url, WRITER)).status, 200);
  const sessions = await cluster.sql(
    `select 1 from session join "user" on "user".pk = user_pk where username = '${READER.username}'`,
  );
  assert.equal(sessions.length, 0);
  return {
    'wrong passwords': attempts,
    'of these answered 401': rejected,
    'and allowed': LOGIN_FAILURES,
  };
}
