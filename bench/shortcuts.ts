import type { Bench, Result } from './bench.ts';
import { load } from './load.ts';
import { median, ratioText } from './measure.ts';
import { without } from './processes.ts';
import { works } from './works.ts';

/** What a shortcut is worth that brings less goes (docs/performance.md). */
const WORTH = 1.1;

/** Each shortcut, a kind of request that it is for, and the settings that leave it out. */
const cases = [
  { name: 'direct', work: 'rest-product', env: without('direct') },
  { name: 'plans', work: 'graphql-page', env: without('plans') },
  { name: 'plans', work: 'graphql-me', env: without('plans') },
  { name: 'shared', work: 'graphql-page-hot', env: without('shared') },
  { name: 'tokens', work: 'me-bearer', env: without('tokens') },
  { name: 'shared connections', work: 'rest-product', env: { DATABASE_SHARED_CONNECTIONS: '0' } },
  { name: 'prepared statements', work: 'graphql-page', env: { DATABASE_PREPARED_STATEMENTS: 'false' } },
];

/** Measures the server with and without each shortcut, on a kind of request that it is for. */
export async function measureShortcuts(bench: Bench, say: (result: Result) => void): Promise<Result[]> {
  const results: Result[] = [];
  for (const { name, work: kind, env } of cases) {
    const work = works.find((known) => known.name === kind);
    if (!work) throw new Error(`there is no work ${kind}`);
    const [on, off] = [await bench.ours(work.size), await bench.ours(work.size, env)];
    const asks = Array.from({ length: work.different }, (_, index) => work.ask(index));
    for (const server of [on, off]) await load(server.port, asks, bench.pace.seconds);
    const rounds: { on: number; off: number }[] = [];
    for (let round = 0; round < bench.pace.rounds; round++) {
      const turn = { off: await load(off.port, asks, bench.pace.seconds), on: await load(on.port, asks, bench.pace.seconds) };
      rounds.push({ on: turn.on.rate, off: turn.off.rate });
    }
    const ratios = rounds.map((turn) => turn.on / turn.off);
    const rate = (whose: 'on' | 'off') => median(rounds.map((turn) => turn[whose])).toFixed(0);
    const result = {
      name,
      what: work.what,
      goal: `${WORTH} times the rate without`,
      reached: ratioText(ratios),
      met: median(ratios) >= WORTH,
      beside: `${rate('on')}/s, without ${rate('off')}/s`,
      rounds,
    };
    results.push(result);
    say(result);
    await bench.clear();
  }
  return results;
}
