import 'reflect-metadata';
import { prepare } from './catalogue.ts';
import { measure, median } from './measure.ts';
import { startBare, startOurs } from './processes.ts';
import { works } from './works.ts';

const server = 'postgresql://postgres@127.0.0.1/postgres';
const names = process.argv.slice(2);
const url = await prepare(server, '1m');
const [ours, bare] = await Promise.all([startOurs(url, JSON.parse(process.env['OURS_ENV'] ?? '{}') as Record<string, string>), startBare(url)]);
try {
  for (const work of works.filter(({ name }) => names.length === 0 || names.includes(name))) {
    const { rounds } = await measure(work, ours, bare, { rounds: Number(process.env['ROUNDS'] ?? 3), seconds: Number(process.env['SECONDS_EACH'] ?? 4) });
    const ratios = rounds.map(({ ours: a, bare: b }) => a.rate / b.rate);
    const m = (f: (r: (typeof rounds)[number]) => number) => median(rounds.map(f));
    console.log(
      `${work.name.padEnd(18)} ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) goal ${work.goal}  ours ${m((r) => r.ours.rate).toFixed(0)}/s cpu ${m((r) => r.ours.cpuMs * 1000).toFixed(0)}us p50 ${m((r) => r.ours.p50).toFixed(1)} p99 ${m((r) => r.ours.p99).toFixed(1)} mem ${m((r) => r.ours.memory).toFixed(0)}; bare ${m((r) => r.bare.rate).toFixed(0)}/s cpu ${m((r) => r.bare.cpuMs * 1000).toFixed(0)}us`,
    );
  }
} finally {
  await ours.stop();
  await bare.stop();
}
