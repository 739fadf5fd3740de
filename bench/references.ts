import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, Result } from './bench.ts';
import { load, type BenchRequest } from './load.ts';
import { median, ratioText } from './measure.ts';
import { start, type MeasuredServer } from './processes.ts';
import { references, type Reference } from './references/references.ts';
import { allLogins } from './storm.ts';
import { distinct, works } from './works.ts';

const FOLDER = join(import.meta.dirname, '../../bench/references');
const USERS = 16;

const run = promisify(execFile);

/** Benchmarks against the reference services. Without their Debian packages, the results say so. */
export const referenceBenchmarks = [
  benchmark('reference-token', 'FastAPI', '`POST /token`, bcrypt cost 10', 1, async () =>
    allLogins(),
  ),
  benchmark('reference-me', 'FastAPI', '`GET /users/me/`', 2, (server) =>
    requestsWithToken(server),
  ),
  benchmark('reference-page', 'Django REST framework', 'v2 page of 1,000 products', 2, async () => {
    const page = works.find(({ name }) => name === 'rest-page');
    return Array.from(
      { length: 100 },
      (_, index) => page?.request(index, '1k') ?? { method: 'GET', path: '/' },
    );
  }),
];

function benchmark(
  name: string,
  of: string,
  what: string,
  goal: number,
  requestsFor: (server: MeasuredServer) => Promise<BenchRequest[]>,
) {
  const reference = references.find((known) => known.name === of);
  return {
    name,
    measure: (bench: Bench) =>
      against(
        bench,
        { name, what: `${what}, to one worker of ${of}`, goal },
        reference,
        requestsFor,
      ),
  };
}

async function against(
  bench: Bench,
  { name, what, goal }: { name: string; what: string; goal: number },
  reference: Reference | undefined,
  requestsFor: (server: MeasuredServer) => Promise<BenchRequest[]>,
): Promise<Result> {
  const result = { name, what, goal: `${goal} times its rate` };
  const version = reference && (await versionOf(reference));
  if (!reference || version === undefined) {
    return {
      ...result,
      reached: 'not measured',
      met: false,
      beside: `needs ${reference?.packages.join(' ')}`,
      rounds: [],
    };
  }
  const ours = await bench.ours('1k');
  const theirs = bench.stopAtEnd(
    await start(
      reference.command,
      reference.environment(await bench.url('1k')),
      reference.readyAt,
      FOLDER,
    ),
  );
  // The other service has no response cache.
  const requests = {
    ours: distinct(await requestsFor(ours)),
    theirs: distinct(await requestsFor(theirs)),
  };
  const rounds: { ours: number; theirs: number }[] = [];
  for (let round = 0; round <= bench.pace.rounds; round++) {
    const turn = {
      theirs: await load(theirs.port, requests.theirs, bench.pace.seconds),
      ours: await load(ours.port, requests.ours, bench.pace.seconds),
    };
    if (turn.ours.failed > 0) throw new Error(`${turn.ours.failed} requests failed`);
    // The first round warms up.
    if (round > 0) rounds.push({ ours: turn.ours.rate, theirs: turn.theirs.rate });
  }
  const ratios = rounds.map((turn) => turn.ours / turn.theirs);
  const rate = (whose: 'ours' | 'theirs') => median(rounds.map((turn) => turn[whose])).toFixed(0);
  return {
    ...result,
    reached: ratioText(ratios),
    met: median(ratios) >= goal,
    beside: `${rate('ours')}/s to ${rate('theirs')}/s; ${reference.name} ${version}`,
    rounds,
  };
}

// Returns the version of the first package, or undefined if one is missing.
async function versionOf({ packages }: Reference): Promise<string | undefined> {
  return run('dpkg', ['-s', ...packages]).then(
    ({ stdout }) => /^Version: (\S+)$/m.exec(stdout)?.[1],
    () => undefined,
  );
}

async function requestsWithToken({ port }: MeasuredServer): Promise<BenchRequest[]> {
  const requests: BenchRequest[] = [];
  for (const { path, headers = {}, body = '' } of allLogins().slice(0, USERS)) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers,
      body,
    });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    requests.push({
      method: 'GET',
      path: '/users/me/',
      headers: { Authorization: `Bearer ${token}` },
    });
  }
  return requests;
}
