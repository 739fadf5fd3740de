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
import { ask, bearer, create, newBarcode, openSession, page, percentile, post, READER, signIn, sold, WRITER } from './shopper.ts';

const INSTANCES = 3;
const LOGIN_FAILURES = 20;
/** So long after a commit, every instance has to tell of it. The ceiling of the mechanism is 50 ms. */
const FELT_MS = 100;
/** Within this time of an instance's end nginx has noticed. */
const MOMENT_MS = 2_000;

interface Shops {
  nginx: Nginx;
  urls: readonly string[];
  token: Record<string, string>;
}

export const instances: Fault = {
  name: 'instances',
  promise:
    'Instances behind a proxy are one: sessions, logouts, the throttling of logins, idempotency keys and new products are felt on all; one that is killed takes nothing with it that was acknowledged.',
  rows: ['S6', 'C1', 'C6'],
  on: ['postgresql'],
  async run(world) {
    const { directory, short, atEnd } = world;
    const cluster = await openCluster(world, { max_connections: '200' });
    const ports = await Promise.all(Array.from({ length: INSTANCES }, freePort));
    const running = new Map<number, RunningServer>();
    const start = async (port: number): Promise<void> => void running.set(port, await startServer(envOf(cluster, port)));
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
      ...(await barcodes(shops, cluster)),
      ...(await keys(shops, cluster)),
      ...(await news(shops, short ? 10 : 200)),
      ...(await killed(shops, cluster, victim, kill, () => start(victim), short ? 4_000 : 30_000)),
      ...(await guesses(shops, cluster, short ? 2 : 3)),
    };
  },
};

function envOf(cluster: Cluster, port: number): Record<string, string> {
  return {
    ...settingsFor(cluster),
    PORT: String(port),
    LOG_LEVEL: 'silent',
    TRUST_PROXY: '127.0.0.1',
    LOGIN_FAILURES_PER_ACCOUNT: String(LOGIN_FAILURES),
  };
}

/** A session is good everywhere, and once its end is acknowledged, nowhere. */
async function logouts({ nginx, urls }: Shops, times: number): Promise<Figures> {
  const ended: number[] = [];
  for (let time = 0; time < times; time++) {
    const key = await openSession(nginx.url);
    const me = (url: string) => ask(`${url}/users/me/`, { headers: { 'X-SESSION-ID': key } });
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
  return { logouts: times, 'of these felt everywhere by the next request': ended.length, 'which took p99': percentile(ended, 0.99) };
}

/** The same barcode a hundred times at once. */
async function barcodes({ nginx, token }: Shops, cluster: Cluster): Promise<Figures> {
  const barcode = newBarcode();
  const answers = await Promise.all(Array.from({ length: 100 }, () => create(nginx.url, token, barcode)));
  const made = answers.filter(({ status }) => status === 201).length;
  const refused = answers.filter(({ status }) => status === 409).length;
  const stored = await cluster.sql(`select 1 from product where barcode = '${barcode}'`);
  assert.deepEqual([made, refused, stored.length], [1, 99, 1]);
  return { 'one barcode a hundred times': `${made} × 201, ${refused} × 409` };
}

/** The same key a hundred times at once; and then with another body. */
async function keys({ nginx, token }: Shops, cluster: Cluster): Promise<Figures> {
  const headers = { ...token, 'Idempotency-Key': 'a-hundred' };
  const barcode = newBarcode();
  const answers = await Promise.all(Array.from({ length: 100 }, () => create(nginx.url, headers, barcode)));
  assert.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1, answers[0]?.text);
  assert.equal(answers[0]?.status, 201);
  const stored = await cluster.sql(`select 1 from product where barcode = '${barcode}'`);
  assert.equal(stored.length, 1);
  const others = await Promise.all(Array.from({ length: 30 }, () => create(nginx.url, headers, newBarcode())));
  assert.deepEqual([...new Set(others.map(({ status }) => status))], [422]);
  return { 'one key a hundred times': `${answers.length} equal answers, ${stored.length} product` };
}

/** A page that all share is made anew once one of them has committed. */
async function news({ urls, token }: Shops, times: number): Promise<Figures> {
  const felt: number[] = [];
  const countAt = async (url: string): Promise<number> => (JSON.parse((await page(url)).text) as { count: number }).count;
  for (let time = 0; time < times; time++) {
    const before = await Promise.all(urls.flatMap((url) => [countAt(url), countAt(url)]));
    const made = await create(urls[time % urls.length] ?? '', token, newBarcode());
    const at = performance.now();
    assert.equal(made.status, 201, made.text);
    const count = Number(before[0]) + 1;
    const told = urls.map(async (url) => {
      while ((await countAt(url)) < count) assert.ok(performance.now() - at < 10 * FELT_MS, 'an instance goes on telling what is old');
      felt.push(performance.now() - at);
    });
    await Promise.all(told);
    await setTimeout(Math.max(0, FELT_MS - (performance.now() - at)));
    assert.deepEqual(
      await Promise.all(urls.map(countAt)),
      urls.map(() => count),
    );
  }
  return { 'a new product is told of everywhere within p99': percentile(felt, 0.99), 'to be within': '50 ms' };
}

/** One instance is killed under load, and started again. */
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
  const note = (status: number, good: number, what: string) => {
    served++;
    if (status !== good) failures.push({ at: performance.now(), what: `${what} ${status}` });
  };
  const reading = Array.from({ length: 8 }, async (_, client) => {
    for (let turn = client; performance.now() < end; turn += 8)
      note((await page(nginx.url, `?page=${1 + (turn % 100)}`)).status, 200, 'GET');
  });
  const writing = Array.from({ length: 4 }, async () => {
    while (performance.now() < end) {
      const barcode = newBarcode();
      const answer = await create(nginx.url, token, barcode);
      note(answer.status, 201, 'POST');
      if (answer.status === 201) acknowledged.push(sold(answer).barcode);
    }
  });
  await setTimeout(forMs / 3);
  const killedAt = performance.now();
  await kill();
  await setTimeout(forMs / 3);
  await start();
  const before = (await nginx.asked()).get(port) ?? 0;
  await Promise.all([...reading, ...writing]);
  const late = failures.filter(({ at }) => at < killedAt || at > killedAt + MOMENT_MS);
  assert.deepEqual(late.slice(0, 10), []);
  await until(async () => {
    await page(nginx.url);
    return ((await nginx.asked()).get(port) ?? 0) > before;
  }, 'a request to the instance that was started again');
  const stored = new Set((await cluster.sql('select barcode from product')).map(({ barcode }) => barcode));
  const lost = acknowledged.filter((barcode) => !stored.has(barcode));
  assert.deepEqual(lost, []);
  return {
    'requests while one was killed and started': served,
    'products acknowledged': acknowledged.length,
    lost: lost.length,
    'failed requests': failures.length,
    'the last of them after': failures.length === 0 ? 'none' : `${Math.round(Math.max(...failures.map(({ at }) => at)) - killedAt)} ms`,
  };
}

/** Two hundred wrong passwords at once, over all instances, until nobody is told anything. */
async function guesses({ nginx }: Shops, cluster: Cluster, bursts: number): Promise<Figures> {
  let informed = 0;
  let asked = 0;
  for (let burst = 0; burst < bursts; burst++) {
    const answers = await Promise.all(Array.from({ length: 200 }, () => signIn(nginx.url, { ...READER, password: 'a guess' })));
    asked += answers.length;
    informed += answers.filter(({ status }) => status === 401).length;
    assert.deepEqual(
      answers.filter(({ status }) => ![401, 429, 503].includes(status)),
      [],
    );
  }
  assert.equal(informed, LOGIN_FAILURES);
  // The right one is told nothing, either; somebody else is not kept waiting.
  assert.equal((await signIn(nginx.url, READER)).status, 429);
  assert.equal((await signIn(nginx.url, WRITER)).status, 200);
  const sessions = await cluster.sql(`select 1 from session join "user" on "user".pk = user_pk where username = '${READER.username}'`);
  assert.equal(sessions.length, 0);
  return { 'wrong passwords': asked, 'of these told to be wrong': informed, 'and allowed': LOGIN_FAILURES };
}
