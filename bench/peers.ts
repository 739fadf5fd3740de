import { cp, readFile } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, Result } from './bench.ts';
import { inFolder } from './folder.ts';
import { send, load, type BenchRequest } from './load.ts';
import { measure, median, ratioText, WARM_UP } from './measure.ts';
import { pageOf, peers, type Peer } from './peers/peers.ts';
import { start } from './processes.ts';
import { workOf, type Work } from './works.ts';

const FOLDER = join(import.meta.dirname, '../../bench/peers');
const PAGES = 2_000;
const WORKS = ['graphql-page', 'rest-product'] as const;
/** The program of the peer without a package of its own. */
const USUAL = join(import.meta.dirname, 'peers/usual.js');

const run = promisify(execFile);

/** Measures peers from npm, and our server, each against the baseline. */
export async function measurePeers(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  return inFolder(async (folder) => {
    await cp(FOLDER, folder, { recursive: true });
    await run('npm', ['install', '--no-audit', '--no-fund'], { cwd: folder });
    const results: Result[] = [];
    const add = async (result: Result) => {
      results.push(result);
      print(result);
      await bench.clear();
    };
    for (const name of WORKS) await add(await ourselves(bench, workOf(name)));
    for (const peer of peers) await add(await against(bench, peer, folder));
    return results;
  });
}

async function ourselves(bench: Bench, work: Work): Promise<Result> {
  const servers = { theirs: await bench.ours('1m'), baseline: await bench.baseline('1m') };
  const rounds = await measure(work, servers, bench.pace);
  return rated(
    'Shopfront',
    work,
    rounds.map(({ theirs, baseline }) => ({ theirs: theirs.rate, baseline: baseline.rate })),
  );
}

async function against(bench: Bench, peer: Peer, folder: string): Promise<Result> {
  const url = await bench.url('1m');
  const work = workOf(peer.query === undefined ? 'rest-product' : 'graphql-page');
  const baselineRequests = Array.from({ length: PAGES }, (_, index) => work.request(index));
  const theirs = bench.stopAtEnd(
    await start(
      [process.execPath, peer.package ? join(folder, `${peer.package}.js`) : USUAL],
      { DATABASE_URL: url, NODE_ENV: 'production' },
      peer.query === undefined ? work.request(0).path : '/graphql?query=%7B__typename%7D',
      folder,
    ),
  );
  const baseline = await bench.baseline('1m');
  const requests =
    peer.query === undefined ? baselineRequests : await walk(theirs.port, peer.query);
  await load(theirs.port, requests, WARM_UP * bench.pace.seconds);
  await load(baseline.port, baselineRequests, WARM_UP * bench.pace.seconds);
  const rounds: { theirs: number; baseline: number }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const turn = {
      baseline: await load(baseline.port, baselineRequests, bench.pace.seconds),
      theirs: await load(theirs.port, requests, bench.pace.seconds),
    };
    if (turn.theirs.failed > 0) throw new Error(`${turn.theirs.failed} requests failed`);
    rounds.push({ theirs: turn.theirs.rate, baseline: turn.baseline.rate });
  }
  const version = peer.package ? ` ${await versionOf(peer.package, folder)}` : '';
  return rated(peer.name + version, work, rounds);
}

async function versionOf(name: string, folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8');
  const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> };
  return dependencies[name] ?? 'of unknown version';
}

// Each page by the end cursor of the previous one, because every peer has its own cursors.
async function walk(port: number, query: string): Promise<BenchRequest[]> {
  const requests: BenchRequest[] = [];
  for (let after: string | null = null; requests.length < PAGES;) {
    const request: BenchRequest = {
      method: 'POST',
      path: '/graphql',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query, variables: { after } }),
    };
    const { endCursor, count } = pageOf(JSON.parse(await send(port, request)));
    if (count !== 10 || endCursor === null) throw new Error('Not a page of ten');
    requests.push(request);
    after = endCursor;
  }
  return requests;
}

function rated(
  name: string,
  { what }: Work,
  rounds: { theirs: number; baseline: number }[],
): Result {
  const ratios = rounds.map(({ theirs, baseline }) => theirs / baseline);
  return {
    name,
    what,
    goal: '',
    reached: ratioText(ratios),
    met: true,
    beside: `${median(rounds.map(({ theirs }) => theirs)).toFixed(0)}/s to ${median(rounds.map(({ baseline }) => baseline)).toFixed(0)}/s of the baseline`,
    rounds,
  };
}
