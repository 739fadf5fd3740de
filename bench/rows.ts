import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { load as loadAtRate, wire } from '../test/support/open-load.ts';
import { SIZES, type Size } from './catalogue.ts';
import type { Bench, Result } from './bench.ts';
import { inFolder } from './folder.ts';
import { send, CLIENTS, load } from './load.ts';
import { measure, median, ratioText, takeTurn, WARM_UP, whole, type Turn } from './measure.ts';
import { startEmbedded, type MeasuredServer } from './processes.ts';
import { referenceBenchmarks } from './references.ts';
import { storm } from './storm.ts';
import { readAll } from './stream.ts';
import { subscribers } from './subscribers.ts';
import {
  distinct,
  hundredAfter,
  pageAfter,
  productsPage,
  spread,
  tokenOf,
  workOf,
  works,
  type Work,
} from './works.ts';

/** A benchmark: its name and its measurement. */
export interface Benchmark {
  name: string;
  measure: (bench: Bench) => Promise<Result>;
}

/**
 * Compressed pages of a hundred, and the maximum ratio of their processor time to that of plain
 * ones.
 */
const COMPRESSED = [
  {
    name: 'compressed-page',
    what: 'GraphQL page of a hundred by gzip, every request another cursor',
    goal: 1.4,
    different: 20_000,
  },
  {
    name: 'compressed-page-hot',
    what: 'the same page, repeated and anonymous',
    goal: 1.1,
    different: 1,
  },
] as const;
const DEEP = [100_000, 5_000_000, 9_000_000] as const;
const DEEP_PAGES = 100;
const STALE_COMMITS = 100;
const MAX_STALE_MS = 50;
const STARTS = 5;
/** Time in ms after which a started process is idle. */
const IDLE_MS = 2_000;
/** The load of the memory's row lasts this many times longer than others. */
const LOADED = 3;

/** All benchmarks, in the order of the table. */
export const benchmarks: readonly Benchmark[] = [
  ...works.map((work) => ({
    name: work.name,
    measure: (bench: Bench) => againstBaseline(bench, work),
  })),
  ...COMPRESSED.map((page) => ({
    name: page.name,
    measure: (bench: Bench) => compressedPage(bench, page),
  })),
  { name: 'steady-page', measure: steadyPage },
  { name: 'staleness', measure: staleness },
  { name: 'deep-page', measure: deepPage },
  { name: 'full-list', measure: fullList },
  { name: 'login-storm', measure: loginStorm },
  { name: 'subscribers', measure: subscribers },
  ...['graphql-product', 'rest-product', 'graphql-page'].map((name) => ({
    name: `growth-${name}`,
    measure: (bench: Bench) => growth(bench, workOf(name)),
  })),
  { name: 'memory', measure: memory },
  { name: 'start', measure: start },
  { name: 'start-embedded', measure: startEmbeddedFilled },
  { name: 'start-empty', measure: startEmpty },
  ...referenceBenchmarks,
];

async function againstBaseline(bench: Bench, work: Work): Promise<Result> {
  const servers = { baseline: await bench.baseline(work.size), ours: await bench.ours(work.size) };
  const other = await bench.otherCheckout(work.size);
  const rounds: { baseline: Turn; ours: Turn; other?: Turn }[] = other
    ? await measure(work, { ...servers, other }, bench.pace)
    : await measure(work, servers, bench.pace);
  if (work.writes) await bench.tidy(work.size);
  const ratios = rounds.map(({ ours, baseline }) => ours.rate / baseline.rate);
  const of = (figure: (round: (typeof rounds)[number]) => number) => median(rounds.map(figure));
  return {
    name: work.name,
    what: work.what,
    goal: `${work.goal.toFixed(2)} of the baseline`,
    reached: ratioText(ratios),
    met: median(ratios) >= work.goal,
    beside:
      `${whole(of(({ ours }) => ours.rate))}/s, baseline ${whole(of(({ baseline }) => baseline.rate))}/s; ` +
      `p50 ${of(({ ours }) => ours.p50).toFixed(1)} ms, p99 ${of(({ ours }) => ours.p99).toFixed(1)} ms; ` +
      `CPU ${whole(of(({ ours }) => ours.cpuMs * 1000))} µs, baseline ${whole(of(({ baseline }) => baseline.cpuMs * 1000))} µs; ` +
      `${whole(of(({ ours }) => ours.memory))} MiB` +
      (other ? `; ${comparedTo(rounds)}` : ''),
    rounds,
  };
}

function comparedTo(rounds: readonly { ours: Turn; other?: Turn }[]): string {
  const of = (figure: (turn: Turn) => number) =>
    ratioText(rounds.flatMap(({ ours, other }) => (other ? figure(ours) / figure(other) : [])));
  return `${of(({ rate }) => rate)} of the rate of the other checkout, ${of(({ cpuMs }) => cpuMs)} of its CPU`;
}

// Both servers at the same fixed rate, half of what the slower one reaches.
async function steadyPage(bench: Bench): Promise<Result> {
  const { rounds: count, seconds } = bench.pace;
  const page = workOf('graphql-page');
  const requests = Array.from({ length: page.different }, (_, index) => page.request(index));
  const [ours, baseline] = [await bench.ours('1m'), await bench.baseline('1m')];
  for (const { port } of [ours, baseline]) await load(port, requests, WARM_UP * seconds);
  const highest: number[] = [];
  for (const { port } of [ours, baseline]) highest.push((await load(port, requests, seconds)).rate);
  const rate = Math.min(...highest) / 2;
  const parts = [
    {
      name: page.name,
      share: 100,
      requests: requests.map(({ method, path, headers, body }) =>
        wire(method, path, headers, body),
      ),
    },
  ];
  const p99Of = async ({ port }: MeasuredServer) => {
    const plan = { port, parts, rate, seconds, connections: CLIENTS };
    const { sent, answers } = await loadAtRate(plan);
    if (answers[200]?.count !== sent) throw new Error('requests failed');
    return answers[200].p99;
  };
  const rounds: { ours: number; baseline: number }[] = [];
  for (let round = 0; round < count; round++)
    rounds.push({ ours: await p99Of(ours), baseline: await p99Of(baseline) });
  const ratios = rounds.map(({ ours: mine, baseline: theirs }) => mine / theirs);
  return {
    name: 'steady-page',
    what: 'GraphQL pages at a fixed rate, half of the highest: the 99th percentile',
    goal: "at most 3 times the baseline's",
    reached: ratioText(ratios),
    met: median(ratios) <= 3,
    beside:
      `${whole(rate)}/s; p99 ${median(rounds.map(({ ours: mine }) => mine)).toFixed(1)} ms, ` +
      `baseline ${median(rounds.map(({ baseline: theirs }) => theirs)).toFixed(1)} ms, from the time when each request was due`,
    rounds,
  };
}

// The same requests with and without `Accept-Encoding`, by turns.
async function compressedPage(
  bench: Bench,
  { name, what, goal, different }: (typeof COMPRESSED)[number],
): Promise<Result> {
  const ours = await bench.ours('1m');
  const requestsWith = (headers: Record<string, string>) =>
    Array.from({ length: different }, (_, index) => {
      const request = hundredAfter(1 + (different === 1 ? 5_000 : spread(index, '1m')));
      return { ...request, headers: { ...request.headers, ...headers } };
    });
  const [plain, gzip] = [requestsWith({}), requestsWith({ 'Accept-Encoding': 'gzip' })];
  for (const requests of [plain, gzip])
    await takeTurn(ours, requests, WARM_UP * bench.pace.seconds);
  const rounds: Record<'plain' | 'gzip', Awaited<ReturnType<typeof takeTurn>>>[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const turn = (requests: typeof plain) => takeTurn(ours, requests, bench.pace.seconds);
    // Alternates the order, so that neither gains by it.
    const first = round % 2 === 0 ? await turn(plain) : undefined;
    const compressed = await turn(gzip);
    rounds.push({ gzip: compressed, plain: first ?? (await turn(plain)) });
  }
  const ratios = rounds.map((round) => round.gzip.cpuMs / round.plain.cpuMs);
  const both = (figure: (turn: (typeof rounds)[number]['gzip']) => number) =>
    `${whole(median(rounds.map((round) => figure(round.gzip))))} to ${whole(median(rounds.map((round) => figure(round.plain))))}`;
  return {
    name,
    what,
    goal: `at most ${goal.toFixed(1)} times the processor time of the same page plain`,
    reached: ratioText(ratios),
    met: median(ratios) <= goal,
    beside: `${both(({ rate }) => rate)} a second, ${both(({ bytes }) => bytes)} bytes with the head, CPU ${both(({ cpuMs }) => cpuMs * 1000)} µs`,
    rounds,
  };
}

// Changes a product on one instance and polls the page with it on another.
async function staleness(bench: Bench): Promise<Result> {
  const [writer, reader] = [await bench.ours('1k'), await bench.ours('1k')];
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${tokenOf(1)}` };
  const update =
    'mutation Rename($name: String!) { updateProduct(pk: 501, input: { name: $name }) { pk } }';
  const rounds: { staleMs: number }[] = [];
  for (let commit = 0; commit < STALE_COMMITS; commit++) {
    const name = `Product ${commit}`;
    await send(reader.port, pageAfter(500));
    await send(writer.port, {
      method: 'POST',
      path: '/graphql',
      headers,
      body: JSON.stringify({ query: update, variables: { name } }),
    });
    const committed = performance.now();
    let staleMs = 0;
    for (;;) {
      const sent = performance.now();
      if ((await send(reader.port, pageAfter(500))).includes(`"${name}"`)) break;
      staleMs = sent - committed;
    }
    rounds.push({ staleMs });
  }
  const most = Math.max(...rounds.map(({ staleMs }) => staleMs));
  return {
    name: 'staleness',
    what: 'a cached response after a commit on another instance',
    goal: `stale for at most ${MAX_STALE_MS} ms`,
    reached: `${most.toFixed(1)} ms at most`,
    met: most <= MAX_STALE_MS,
    beside: `median ${median(rounds.map(({ staleMs }) => staleMs)).toFixed(1)} ms, ${STALE_COMMITS} commits`,
    rounds,
  };
}

async function deepPage(bench: Bench): Promise<Result> {
  const ours = await bench.ours('10m');
  const time = async (first: number): Promise<number> => {
    const times: number[] = [];
    for (let page = 0; page < DEEP_PAGES; page++) {
      const started = performance.now();
      await send(ours.port, productsPage(first + page));
      times.push(performance.now() - started);
    }
    return median(times);
  };
  await time(1_000);
  const rounds: { firstMs: number; deepMs: number[] }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const shift = round * DEEP_PAGES;
    const firstMs = await time(1 + shift);
    const deepMs: number[] = [];
    for (const depth of DEEP) deepMs.push(await time(depth / 10 + shift));
    rounds.push({ firstMs, deepMs });
  }
  const ratios = rounds.map(({ firstMs, deepMs }) => Math.max(...deepMs) / firstMs);
  const times = DEEP.map(
    (depth, at) =>
      `${median(rounds.map(({ deepMs }) => deepMs[at] ?? Number.NaN)).toFixed(2)} ms at ${whole(depth)}`,
  );
  return {
    name: 'deep-page',
    what: 'REST v2 page at any offset, with its count, at 10,000,000 rows',
    goal: "at most 3 times the first page's time",
    reached: ratioText(ratios),
    met: median(ratios) <= 3,
    beside: `${median(rounds.map(({ firstMs }) => firstMs)).toFixed(2)} ms at 0, ${times.join(', ')}; one client`,
    rounds,
  };
}

async function fullList(bench: Bench): Promise<Result> {
  const [ours, baseline] = [await bench.ours('1m'), await bench.baseline('1m')];
  // The first list includes memory that a process allocates once.
  const fresh = await readAll(ours);
  await readAll(baseline);
  const rounds = [];
  for (let round = 0; round < bench.pace.rounds; round++)
    rounds.push({ baseline: await readAll(baseline), ours: await readAll(ours) });
  const broken = rounds.find(({ ours: { rows: count } }) => count !== SIZES['1m']);
  if (broken)
    throw new Error(`the list has ${whole(broken.ours.rows)} products, not ${whole(SIZES['1m'])}`);
  const ratios = rounds.map(({ ours: mine, baseline: theirs }) => mine.rate / theirs.rate);
  const rate = median(rounds.map(({ ours: mine }) => mine.rate));
  const first = median(rounds.map(({ ours: mine }) => mine.firstByteMs));
  const added = median(rounds.map(({ ours: mine }) => mine.added));
  return {
    name: 'full-list',
    what: 'the whole list of 1,000,000 by REST; the baseline is COPY of JSON',
    goal: '1.30 of the baseline, first byte within 15 ms, at most 48 MiB added, also by the first list of a process',
    reached: `${ratioText(ratios)}, ${first.toFixed(0)} ms, ${added.toFixed(0)} MiB, the first ${fresh.added.toFixed(0)} MiB`,
    met: median(ratios) >= 1.3 && first <= 15 && Math.max(added, fresh.added) <= 48,
    beside: `${whole(rate)} products/s; the first byte of the first list after ${fresh.firstByteMs.toFixed(0)} ms`,
    rounds,
  };
}

async function loginStorm(bench: Bench): Promise<Result> {
  const ours = await bench.ours('1m');
  const rounds = [];
  for (let round = 0; round < bench.pace.rounds; round++)
    rounds.push(await storm(ours, workOf('graphql-page'), bench.pace.seconds));
  if (
    rounds.some(
      ({ logins, quiet, storm: beside }) => logins.failed + quiet.failed + beside.failed > 0,
    )
  )
    throw new Error('requests failed');
  const reads = rounds.map(({ quiet, storm: beside }) => beside.rate / quiet.rate);
  const logins = rounds.map((round) => round.logins.rate / round.limit);
  return {
    name: 'login-storm',
    what: 'GraphQL pages during a storm of logins',
    goal: 'in each round 0.80 of the quiet rate; logins 0.95 of the hash limit of the cores given to them',
    reached: `${ratioText(reads)}; ${ratioText(logins)}`,
    met: Math.min(...reads) >= 0.8 && Math.min(...logins) >= 0.95,
    beside:
      `${median(rounds.map((round) => round.logins.rate)).toFixed(1)} logins/s on ` +
      `${median(rounds.map(({ cores }) => cores)).toFixed(2)} cores, bcrypt cost 10`,
    rounds,
  };
}

// The response cache would soon contain a small catalogue.
async function growth(bench: Bench, work: Work): Promise<Result> {
  const servers = new Map<Size, Awaited<ReturnType<Bench['ours']>>>();
  for (const size of ['1k', '10m'] as const) servers.set(size, await bench.ours(size));
  const rate = async (size: Size, clients: number) => {
    const requests = distinct(
      Array.from({ length: work.different }, (_, index) => work.request(index, size)),
    );
    return (await load(servers.get(size)?.port ?? 0, requests, bench.pace.seconds, clients)).rate;
  };
  // Warms up, so that the disk is not measured.
  for (const size of servers.keys()) await rate(size, CLIENTS);
  const rounds: { small: number; large: number; loaded: { small: number; large: number } }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const loaded = { small: await rate('1k', CLIENTS), large: await rate('10m', CLIENTS) };
    rounds.push({ small: await rate('1k', 1), large: await rate('10m', 1), loaded });
  }
  const ratios = rounds.map(({ small, large }) => small / large);
  return {
    name: `growth-${work.name}`,
    what: `${work.what}, from 1,000 to 10,000,000 products`,
    goal: 'at most 1.3 times the time',
    reached: ratioText(ratios),
    met: median(ratios) <= 1.3,
    beside:
      `one client: ${(1000 / median(rounds.map(({ small }) => small))).toFixed(2)} ms, then ${(1000 / median(rounds.map(({ large }) => large))).toFixed(2)} ms; ` +
      `${CLIENTS} clients: ${ratioText(rounds.map(({ loaded }) => loaded.small / loaded.large))}`,
    rounds,
  };
}

async function memory(bench: Bench): Promise<Result> {
  const pages = workOf('graphql-page');
  const requests = Array.from({ length: pages.different }, (_, index) => pages.request(index));
  const rounds: { idle: number; loaded: number }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const ours = await bench.ours('1m');
    await setTimeout(IDLE_MS);
    const idle = ours.memory().now;
    await load(ours.port, requests, bench.pace.seconds * LOADED);
    rounds.push({ idle, loaded: ours.memory().peak });
    await ours.stop();
  }
  const [idle, loaded] = [rounds.map((round) => round.idle), rounds.map((round) => round.loaded)];
  const text = (values: readonly number[]) =>
    `${whole(median(values))} MiB (${whole(Math.min(...values))} to ${whole(Math.max(...values))})`;
  return {
    name: 'memory',
    what: 'memory of a fresh process, idle and under load of GraphQL pages',
    goal: 'at most 140 MiB idle, 260 MiB under load',
    reached: `${text(idle)}; ${text(loaded)}`,
    met: median(idle) <= 140 && median(loaded) <= 260,
    beside: `${CLIENTS} clients for ${bench.pace.seconds * LOADED} s`,
    rounds,
  };
}

async function start(bench: Bench): Promise<Result> {
  await bench.url('1m');
  return startTimes('start', 'a filled PostgreSQL server', 0.8, () => bench.ours('1m'));
}

async function startEmbeddedFilled(): Promise<Result> {
  return inFolder(async (folder) => {
    await (await startEmbedded(folder)).stop();
    return startTimes('start-embedded', 'a filled directory', 1, () => startEmbedded(folder));
  });
}

function startEmpty(): Promise<Result> {
  return inFolder((folder) => {
    let number = 0;
    return startTimes('start-empty', 'an empty directory', 2.5, () =>
      startEmbedded(join(folder, String(number++))),
    );
  });
}

async function startTimes(
  name: string,
  on: string,
  limit: number,
  open: () => Promise<MeasuredServer>,
): Promise<Result> {
  const seconds: number[] = [];
  for (let time = 0; time < STARTS; time++) {
    const began = performance.now();
    const ours = await open();
    await send(ours.port, productsPage(1));
    seconds.push((performance.now() - began) / 1000);
    await ours.stop();
    await setTimeout(100);
  }
  return {
    name,
    what: `start to first response, on ${on}`,
    goal: `at most ${limit.toFixed(1)} s`,
    reached: `${median(seconds).toFixed(2)} s`,
    met: median(seconds) <= limit,
    beside: `${STARTS} starts, ${Math.min(...seconds).toFixed(2)} to ${Math.max(...seconds).toFixed(2)} s`,
    rounds: seconds,
  };
}
