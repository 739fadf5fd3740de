import 'reflect-metadata';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Argument, Command } from 'commander';
import { z } from 'zod';
import type * as Catalogue from './catalogue.ts';
import { load } from './load.ts';
import { WARM_UP } from './measure.ts';
import { countUpTo, serverOption } from './options.ts';
import { freePort, production, start } from './processes.ts';
import { workOf, works } from './works.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'profiles');
const SHOWN = 20;
const MAX_SECONDS = 100;

const targets = z.array(z.object({ webSocketDebuggerUrl: z.string() })).min(1);
const answer = z.object({ result: z.unknown() });
const stopped = z.object({
  profile: z.looseObject({
    nodes: z.array(
      z.object({
        id: z.number(),
        callFrame: z.object({ functionName: z.string(), url: z.string() }),
      }),
    ),
    samples: z.array(z.number()),
    timeDeltas: z.array(z.number()),
  }),
});

type Profile = z.infer<typeof stopped>['profile'];

/** The parts of a server and their places, the first that matches. */
const PARTS: readonly [name: string, places: RegExp][] = [
  ['kernel, libuv, HTTP parser', /^\(program\)$/],
  ['writes to sockets', /^native (?:write|shutdown)/],
  ['garbage collection', /^\(garbage collector\)$/],
  ['built-ins of V8', /^native |^\(/],
  ['Node.js', /^node:/],
  ['driver, ORM', /^(?:pg|postgres|@mikro-orm|kysely)/],
  ['Apollo Server, graphql-js', /^(?:@apollo|graphql|@as-integrations|type-graphql)/],
  ['Express, other packages', /^(?!src\/)/],
  ['http, rest, telemetry', /^src\/(?:app|server|main|http|rest|telemetry)/],
  ['graphql', /^src\/graphql/],
  ['database, pagination, request', /^src\/(?:database|pagination|request)/],
  ['features, rules', /^src\//],
];

await new Command('profile')
  .description(
    'Loads our server with one kind of request, and prints where its processor time went. Writes the CPU profile to profiles/.',
  )
  .addArgument(new Argument('<name>', 'the kind of request').choices(works.map(({ name }) => name)))
  .addOption(serverOption())
  .option(
    '--of <folder>',
    "another checkout's folder with its build",
    (folder) => resolve(folder),
    ROOT,
  )
  .option('--seconds <count>', 'length of the load', countUpTo(MAX_SECONDS), 4)
  .action(profile)
  .parseAsync();

async function profile(
  name: string,
  { server, of: checkout, seconds }: { server: string; of: string; seconds: number },
): Promise<void> {
  const work = workOf(name);
  // Each checkout has its own schema.
  const { prepare } = (await import(join(checkout, 'dist/bench/catalogue.js'))) as typeof Catalogue;
  const url = await prepare(server, work.size);
  const port = await freePort();
  const command = [
    process.execPath,
    `--inspect=127.0.0.1:${port}`,
    join(checkout, 'dist/src/main.js'),
  ];
  const ours = await start(command, production(url), '/readyz', checkout);
  const requests = Array.from({ length: work.different }, (_, index) => work.request(index));
  const half = work.writes ? requests.length / 2 : 0;
  await load(ours.port, half ? requests.slice(0, half) : requests, WARM_UP * seconds);
  const { call, disconnect } = await inspect(port);
  await call('Profiler.enable');
  await call('Profiler.start');
  const before = ours.cpu();
  const { rate, failed } = await load(ours.port, requests.slice(half), seconds);
  const cpuUs = ((ours.cpu() - before) / (rate * seconds)) * 1e6;
  const { profile: found } = stopped.parse(await call('Profiler.stop'));
  // Otherwise the process would not exit.
  disconnect();
  await ours.stop();
  if (failed > 0) throw new Error(`${failed} requests failed`);
  await mkdir(FOLDER, { recursive: true });
  const path = join(FOLDER, `${name}-${new Date().toISOString().replace(/\W/g, '')}.cpuprofile`);
  await writeFile(path, JSON.stringify(found));
  const shares = sharesOf(found);
  console.log(
    `${name}: ${rate.toFixed(0)} requests/s, ${cpuUs.toFixed(0)} µs of processor time each, profiler included\n`,
  );
  const print = (place: string, share: number) =>
    console.log(
      `${(share * cpuUs).toFixed(1).padStart(7)} µs ${(share * 100).toFixed(1).padStart(5)} %  ${place}`,
    );
  const partOf = (place: string) => PARTS.find(([, places]) => places.test(place))?.[0];
  for (const [part] of PARTS) {
    const own = shares.filter(([place]) => partOf(place) === part);
    print(
      part,
      own.reduce((sum, [, share]) => sum + share, 0),
    );
  }
  console.log();
  for (const [place, share] of shares.slice(0, SHOWN)) print(place, share);
  console.log(`\nThe profile, for the inspector of a browser: ${path}`);
}

// Connects to a Node process by the Chrome DevTools Protocol.
async function inspect(port: number) {
  const listed = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = targets.parse(await listed.json());
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
  await once(socket, 'open');
  return {
    call: async (method: string): Promise<unknown> => {
      socket.send(JSON.stringify({ id: 1, method }));
      const [{ data }] = (await once(socket, 'message')) as [{ data: string }];
      return answer.parse(JSON.parse(data)).result;
    },
    disconnect: () => socket.close(),
  };
}

// Returns each place's share of the time in which the process was not idle.
function sharesOf({ nodes, samples, timeDeltas }: Profile): [string, number][] {
  const places = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const times = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const place = places.get(id) ?? '';
    if (place === '(idle)') continue;
    const time = timeDeltas[index] ?? 0;
    busy += time;
    times.set(place, (times.get(place) ?? 0) + time);
  }
  return [...times]
    .map(([place, time]): [string, number] => [place, time / busy])
    .toSorted(([, a], [, b]) => b - a);
}

// Returns the package, the Node module, or our file that contains a function.
function placeOf({ functionName, url }: { functionName: string; url: string }): string {
  const [, packageName] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (packageName !== undefined) return packageName;
  const [, file] = /\/dist\/(src\/.*)\.js$/.exec(url) ?? [];
  if (file !== undefined) return `${file}.ts`;
  if (url.startsWith('node:')) return `node:${url.slice(5).split('/')[0]}`;
  // Native code has a name and no file: system calls, the garbage collector.
  return functionName.startsWith('(') ? functionName : `native ${functionName}`;
}
