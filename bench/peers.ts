import { cp, mkdtemp, rm } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, Result } from './bench.ts';
import { ask, load, type Ask } from './load.ts';
import { measure, median, ratioText } from './measure.ts';
import { peers, type Peer } from './peers/peers.ts';
import { start } from './processes.ts';
import { works } from './works.ts';

const FOLDER = join(import.meta.dirname, '../../bench/peers');
const PAGES = 2_000;

const run = promisify(execFile);

/** Measures the GraphQL page of ten on every peer that can be had from npm, and on ours, each against the bare twin. */
export async function measurePeers(bench: Bench, say: (result: Result) => void): Promise<Result[]> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-peers-'));
  try {
    await cp(FOLDER, folder, { recursive: true });
    await run('npm', ['install', '--no-audit', '--no-fund'], { cwd: folder });
    const results: Result[] = [];
    const keep = async (result: Result) => {
      results.push(result);
      say(result);
      await bench.clear();
    };
    await keep(await ourselves(bench));
    for (const peer of peers) await keep(await against(bench, peer, folder));
    return results;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function ourselves(bench: Bench): Promise<Result> {
  const page = works.find(({ name }) => name === 'graphql-page');
  if (!page) throw new Error('there is no page to measure');
  const rounds = await measure(page, await bench.ours('1m'), await bench.bare('1m'), bench.pace);
  return rated(
    'Shopfront',
    rounds.map((round) => ({ theirs: round.ours.rate, bare: round.bare.rate })),
  );
}

async function against(bench: Bench, peer: Peer, folder: string): Promise<Result> {
  const url = await bench.url('1m');
  const theirs = bench.keep(
    await start(
      [process.execPath, join(folder, peer.file)],
      { DATABASE_URL: url, NODE_ENV: 'production' },
      '/graphql?query=%7B__typename%7D',
      folder,
    ),
  );
  const bare = await bench.bare('1m');
  const asks = await walk(theirs.port, peer);
  const page = works.find(({ name }) => name === 'graphql-page');
  const bareAsks = Array.from({ length: PAGES }, (_, index) => page?.ask(index) ?? { method: 'GET' as const, path: '/' });
  await load(theirs.port, asks, bench.pace.seconds);
  await load(bare.port, bareAsks, bench.pace.seconds);
  const rounds: { theirs: number; bare: number }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const turn = { bare: await load(bare.port, bareAsks, bench.pace.seconds), theirs: await load(theirs.port, asks, bench.pace.seconds) };
    if (turn.theirs.failed > 0) throw new Error(`${turn.theirs.failed} requests failed`);
    rounds.push({ theirs: turn.theirs.rate, bare: turn.bare.rate });
  }
  return rated(peer.name, rounds);
}

// Each page by the cursor that the one before it ended with, as every peer writes cursors of its own.
async function walk(port: number, { query, page }: Peer): Promise<Ask[]> {
  const asks: Ask[] = [];
  for (let after: string | null = null; asks.length < PAGES;) {
    const asked: Ask = {
      method: 'POST',
      path: '/graphql',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query, variables: { after } }),
    };
    const { endCursor, count } = page(JSON.parse(await ask(port, asked)));
    if (count !== 10 || endCursor === null) throw new Error('no page of ten');
    asks.push(asked);
    after = endCursor;
  }
  return asks;
}

function rated(name: string, rounds: { theirs: number; bare: number }[]): Result {
  const ratios = rounds.map(({ theirs, bare }) => theirs / bare);
  return {
    name,
    what: 'GraphQL page of ten, every request another cursor',
    goal: '',
    reached: ratioText(ratios),
    met: true,
    beside: `${median(rounds.map(({ theirs }) => theirs)).toFixed(0)}/s to ${median(rounds.map(({ bare }) => bare)).toFixed(0)}/s of bare`,
    rounds,
  };
}
