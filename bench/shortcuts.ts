import type { Bench, Result } from './bench.ts';
import { load } from './load.ts';
import { median, ratioText } from './measure.ts';
import { without } from './processes.ts';
import { works } from './works.ts';

/** Minimum gain of an optimization; those with less are removed (docs/performance.md). */
const MIN_GAIN = 1.1;

/** Each optimization, a kind of request that uses it, and settings that disable it. */
const cases = [
  { name: 'direct', work: 'rest-product', env: without('direct') },
  { name: 'plans', work: 'graphql-page', env: without('plans') },
  { name: 'plans', work: 'graphql-me', env: without('plans') },
  { name: 'shared', work: 'graphql-page-hot', env: without('shared') },
  { name: 'tokens', work: 'me-bearer', env: without('tokens') },
  {
    name: 'pipelined connection',
    work: 'rest-product',
    env: { DATABASE_PIPELINE_CONNECTIONS: '0' },
  },
  {
    name: 'prepared statements',
    work: 'graphql-page',
    env: { DATABASE_PREPARED_STATEMENTS: 'false' },
  },
];

/** Measures the server with and without each optimization. */
export async function measureShortcuts(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const { name, work: kind, env } of cases) {
    const work = works.find((known) => known.name === kind);
    if (!work) throw new Error(`There is no work ${kind}`);
    const [on, off] = [await bench.ours(work.size), await bench.ours(work.size, env)];
    const requests = Array.from({ length: work.different }, (_, index) => work.request(index));
    for (const server of [on, off]) await load(server.port, requests, bench.pace.seconds);
    const rounds: { on: number; off: number }[] = [];
    for (let round = 0; round < bench.pace.rounds; round++) {
      const turn = {
        off: await load(off.port, requests, bench.pace.seconds),
        on: await load(on.port, requests, bench.pace.seconds),
      };
      rounds.push({ on: turn.on.rate, off: turn.off.rate });
    }
    const ratios = rounds.map((turn) => turn.on / turn.off);
    const rate = (whose: 'on' | 'off') => median(rounds.map((turn) => turn[whose])).toFixed(0);
    const result = {
      name,
      what: work.what,
      goal: `${MIN_GAIN} times the rate without`,
      reached: ratioText(ratios),
      met: median(ratios) >= MIN_GAIN,
      beside: `${rate('on')}/s, without ${rate('off')}/s`,
      rounds,
    };
    results.push(result);
    print(result);
    await bench.clear();
  }
  return results;
}
