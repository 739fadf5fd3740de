import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Client } from 'pg';
import { startNginx } from '../test/support/nginx.ts';
import type { Bench, Result } from './bench.ts';
import { inFolder } from './folder.ts';
import { load } from './load.ts';
import { median, ratioText, WARM_UP, whole } from './measure.ts';
import { statOf, TICKS_PER_SECOND, type MeasuredServer } from './processes.ts';
import { workOf, type Work } from './works.ts';

const WORKS = ['graphql-page', 'create'] as const;

interface Turn {
  rate: number;
  /** Processor time per request in µs, by process. */
  costs: Record<string, number>;
}

/**
 * Measures pages and creations with one and two instances behind the nginx of deploy/compose, first
 * with all cores for all processes, then with PostgreSQL alone on the first one. PostgreSQL must
 * run on this machine.
 */
export async function measureCores(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  const postmaster = await postmasterOf(bench.server);
  const last = availableParallelism() - 1;
  const results: Result[] = [];
  const measureAll = async (place: string) => {
    for (const name of WORKS) {
      const result = await compare(bench, workOf(name), place, postmaster);
      results.push(result);
      print(result);
    }
  };
  await measureAll('all cores for all');
  try {
    pin(postmaster, '0');
    pin(process.pid, `1-${last}`);
    await measureAll('PostgreSQL alone on one core');
  } finally {
    for (const pid of [postmaster, process.pid]) pin(pid, `0-${last}`);
  }
  return results;
}

async function compare(
  bench: Bench,
  work: Work,
  place: string,
  postmaster: number,
): Promise<Result> {
  const instances = [await bench.ours(work.size), await bench.ours(work.size)];
  for (const { port } of instances)
    await load(port, requestsOf(work), WARM_UP * bench.pace.seconds);
  const rounds: { one: Turn; two: Turn }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const one = await turn(bench, work, instances.slice(0, 1), postmaster);
    rounds.push({ one, two: await turn(bench, work, instances, postmaster) });
  }
  await (work.writes ? bench.tidy(work.size) : bench.clear());
  const figures = (which: 'one' | 'two') => {
    const turns = rounds.map((round) => round[which]);
    const costs = Object.keys(turns[0]?.costs ?? {}).map(
      (part) => `${part} ${whole(median(turns.map((each) => each.costs[part] ?? Number.NaN)))} µs`,
    );
    return `${which}: ${whole(median(turns.map(({ rate }) => rate)))}/s, ${costs.join(', ')}`;
  };
  return {
    name: `${work.name}, ${place}`,
    what: `${work.what}: two instances to one`,
    goal: '',
    reached: ratioText(rounds.map(({ one, two }) => two.rate / one.rate)),
    met: true,
    beside: `${figures('one')}; ${figures('two')}`,
    rounds,
  };
}

function turn(
  { pace: { seconds } }: Bench,
  work: Work,
  instances: readonly MeasuredServer[],
  postmaster: number,
): Promise<Turn> {
  return inFolder(async (folder) => {
    const ports = instances.map(({ port }) => port);
    const nginx = await startNginx(folder, ports);
    const used = () =>
      new Map([
        ['instances', sumOf(instances.map((instance) => instance.cpu()))],
        ['nginx', familyCpu(nginx.pid)],
        ['PostgreSQL', familyCpu(postmaster)],
      ]);
    try {
      const before = used();
      const { rate, failed } = await load(
        Number(new URL(nginx.url).port),
        requestsOf(work),
        seconds,
      );
      if (failed > 0) throw new Error(`${failed} requests failed`);
      const costOf = (time: number, part: string) =>
        ((time - (before.get(part) ?? 0)) / (rate * seconds)) * 1e6;
      const costs = Array.from(used(), ([part, time]) => [part, costOf(time, part)]);
      return { rate, costs: Object.fromEntries(costs) as Turn['costs'] };
    } finally {
      await nginx.stop();
    }
  });
}

function requestsOf(work: Work) {
  return Array.from({ length: work.different }, (_, index) => work.request(index));
}

async function postmasterOf(server: string): Promise<number> {
  const client = new Client({ connectionString: server });
  await client.connect();
  const { rows } = await client.query<{ file: string }>(
    `select pg_read_file('postmaster.pid') as file`,
  );
  await client.end();
  return Number(rows[0]?.file.split('\n')[0]);
}

// Later children inherit it.
function pin(pid: number, cores: string): void {
  for (const each of [pid, ...childrenOf(pid)])
    spawnSync('taskset', ['-a', '-c', '-p', cores, String(each)]);
}

/** Returns the processor time of a process and all its children, in seconds. */
function familyCpu(pid: number): number {
  // Children that have exited are counted by their parent.
  const times = [
    statOf(pid).slice(11, 15),
    ...childrenOf(pid).map((child) => statOrNothing(child).slice(11, 13)),
  ];
  return sumOf(times.flat().map(Number)) / TICKS_PER_SECOND;
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
}

function statOrNothing(pid: number): string[] {
  try {
    return statOf(pid);
  } catch {
    // It has exited.
    return [];
  }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
