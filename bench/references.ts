import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, Result } from './bench.ts';
import { load, type Ask } from './load.ts';
import { median, ratioText } from './measure.ts';
import { start, without, type Measured } from './processes.ts';
import { references, type Reference } from './references/references.ts';
import { allLogins } from './storm.ts';
import { works } from './works.ts';

const FOLDER = join(import.meta.dirname, '../../bench/references');
const USERS = 16;

const run = promisify(execFile);

/** The reference services on the same work. They need Debian packages; without, their rows say so. */
export const referenceRows = [
  row('reference-token', 'FastAPI', '`POST /token`, bcrypt cost 10', 0.9, async () => allLogins()),
  row('reference-me', 'FastAPI', '`GET /users/me/`', 2, (server) => signedIn(server)),
  row('reference-page', 'Django REST framework', 'v2 page of 1,000 products', 2, async () => {
    const page = works.find(({ name }) => name === 'rest-page');
    return Array.from({ length: 100 }, (_, index) => page?.ask(index, '1k') ?? { method: 'GET', path: '/' });
  }),
];

function row(name: string, of: string, what: string, goal: number, asksFor: (server: Measured) => Promise<Ask[]>) {
  const reference = references.find((known) => known.name === of);
  return { name, measure: (bench: Bench) => against(bench, { name, what: `${what}, to one worker of ${of}`, goal }, reference, asksFor) };
}

async function against(
  bench: Bench,
  { name, what, goal }: { name: string; what: string; goal: number },
  reference: Reference | undefined,
  asksFor: (server: Measured) => Promise<Ask[]>,
): Promise<Result> {
  const result = { name, what, goal: `${goal} times its rate` };
  if (!reference || !(await isInstalled(reference))) {
    return { ...result, reached: 'not measured', met: false, beside: `needs ${reference?.packages.join(' ')}`, rounds: [] };
  }
  // Of so few different requests all would be shared, and the other service shares nothing.
  const ours = await bench.ours('1k', without('shared'));
  const theirs = bench.keep(await start(reference.command, reference.environment(await bench.url('1k')), reference.readyAt, FOLDER));
  const asks = { ours: await asksFor(ours), theirs: await asksFor(theirs) };
  const rounds: { ours: number; theirs: number }[] = [];
  for (let round = 0; round <= bench.pace.rounds; round++) {
    const turn = {
      theirs: await load(theirs.port, asks.theirs, bench.pace.seconds),
      ours: await load(ours.port, asks.ours, bench.pace.seconds),
    };
    if (turn.ours.failed > 0) throw new Error(`${turn.ours.failed} requests failed`);
    // The first is to warm up.
    if (round > 0) rounds.push({ ours: turn.ours.rate, theirs: turn.theirs.rate });
  }
  const ratios = rounds.map((turn) => turn.ours / turn.theirs);
  const rate = (whose: 'ours' | 'theirs') => median(rounds.map((turn) => turn[whose])).toFixed(0);
  return { ...result, reached: ratioText(ratios), met: median(ratios) >= goal, beside: `${rate('ours')}/s to ${rate('theirs')}/s`, rounds };
}

async function isInstalled({ packages }: Reference): Promise<boolean> {
  return run('dpkg', ['-s', ...packages]).then(
    () => true,
    () => false,
  );
}

async function signedIn({ port }: Measured): Promise<Ask[]> {
  const asks: Ask[] = [];
  for (const { path, headers = {}, body = '' } of allLogins().slice(0, USERS)) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    asks.push({ method: 'GET', path: '/users/me/', headers: { Authorization: `Bearer ${token}` } });
  }
  return asks;
}
