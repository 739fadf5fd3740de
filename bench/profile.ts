import 'reflect-metadata';
import { statSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command } from 'commander';
import { z } from 'zod';
import { prepare } from './catalogue.ts';
import { load } from './load.ts';
import { serverOption } from './options.ts';
import { production, start } from './processes.ts';
import { workOf, works } from './works.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'profiles');
const WARM_SECONDS = 2;
const SECONDS = 5;
const SHOWN = 20;

const profileFile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});

type Profile = z.infer<typeof profileFile>;

await new Command('profile')
  .description(
    'Loads our server with one kind of request, writes a CPU profile to profiles/, and prints where the time went.',
  )
  .addArgument(new Argument('<name>', 'the kind of request').choices(works.map(({ name }) => name)))
  .addOption(serverOption())
  .action(profile)
  .parseAsync();

async function profile(name: string, { server }: { server: string }): Promise<void> {
  const work = workOf(name);
  const url = await prepare(server, work.size);
  const folder = join(FOLDER, `${name}-${new Date().toISOString().replace(/\W/g, '')}`);
  await mkdir(folder, { recursive: true });
  const command = [
    process.execPath,
    '--cpu-prof',
    `--cpu-prof-dir=${folder}`,
    join(ROOT, 'dist/src/main.js'),
  ];
  const ours = await start(command, production(url), '/readyz');
  const requests = Array.from({ length: work.different }, (_, index) => work.request(index));
  await load(ours.port, requests, WARM_SECONDS);
  const before = ours.cpu();
  const { rate } = await load(ours.port, requests, SECONDS);
  const cpuUs = ((ours.cpu() - before) / (rate * SECONDS)) * 1e6;
  await ours.stop();
  // The hash threads write smaller ones.
  const files = (await readdir(folder)).map((file) => join(folder, file));
  const [path = ''] = files.toSorted((a, b) => statSync(b).size - statSync(a).size);
  const shares = sharesOf(profileFile.parse(JSON.parse(await readFile(path, 'utf8'))));
  console.log(
    `${name}: ${rate.toFixed(0)} requests/s, ${cpuUs.toFixed(0)} µs of processor time each, profiler included\n`,
  );
  for (const [place, share] of shares.slice(0, SHOWN)) {
    console.log(
      `${(share * cpuUs).toFixed(1).padStart(7)} µs ${(share * 100).toFixed(1).padStart(5)} %  ${place}`,
    );
  }
  console.log(`\nThe profile, for the inspector of a browser: ${path}`);
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
