import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { cp, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import {
  freePort,
  shell,
  startServer,
  stopServer,
  type ProcessResult,
  type RunningServer,
} from '../support/process.ts';

/** Programs with generated types. `npm run tools` installs their packages. */
const PROGRAMS = resolve('test/tools');
const FILES = ['openapi-fetch.ts', 'orval.ts', 'orval.config.js', 'package.json', 'tsconfig.json'];
/** Maximum time of generation and compilation, in ms. */
const TIMEOUT_MS = 300_000;

const TSC = 'node_modules/.bin/tsc -p .';
const COMMANDS = [
  `node_modules/.bin/openapi-typescript ${resolve('openapi.json')} -o generated/openapi-typescript.ts`,
  'node_modules/.bin/orval',
  TSC,
];
const WRONG = `import type { paths } from './generated/openapi-typescript.js';
import { getApiV1ShopProductPk } from './generated/orval.js';
export const pk: paths['/api/v1/shop/product/{pk}']['get']['parameters']['path']['pk'] = 'one';
export const product = (): unknown => getApiV1ShopProductPk('one');
`;

interface Operation {
  operationId: string;
  responses: object;
}

const { paths } = JSON.parse(await readFile('openapi.json', 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId, responses }]) => ({
    name: `${method.toUpperCase()} ${path}`,
    operationId,
    // Numeric keys are in ascending order, so the first is the status of success.
    status: Number(Object.keys(responses)[0]),
  })),
);

let dataDir: string;
let folder: string;
let server: RunningServer;
const results: (ProcessResult & { command: string })[] = [];

beforeAll(async () => {
  dataDir = await makeDataDir();
  folder = await mkdtemp(join(tmpdir(), 'shopfront-generators-'));
  const port = String(await freePort());
  server = await startServer({
    DATA_DIR: dataDir,
    PORT: port,
    PUBLIC_URL: `http://127.0.0.1:${port}`,
  });
  await Promise.all(FILES.map((file) => cp(join(PROGRAMS, file), join(folder, file))));
  await symlink(join(PROGRAMS, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(
    join(folder, 'openapi.json'),
    await (await fetch(`${server.url}/openapi.json`)).text(),
  );
  for (const command of COMMANDS)
    results.push({ command, ...(await shell(`cd ${folder} && ${command}`, {})) });
}, TIMEOUT_MS);

afterAll(async () => {
  await stopServer(server);
  await Promise.all([removeDirectory(dataDir), removeDirectory(folder)]);
});

test('the code that openapi-typescript and orval generate compiles strictly, with programs that call every operation', () => {
  expect(
    results.map(({ command, code, stdout, stderr }) => [
      command,
      code,
      code === 0 ? '' : stdout + stderr,
    ]),
  ).toEqual(COMMANDS.map((command) => [command, 0, '']));
});

test(
  'wrong input compiles with neither',
  async () => {
    await writeFile(join(folder, 'wrong.ts'), WRONG);
    const { stdout } = await shell(`cd ${folder} && ${TSC} --noEmit`, {});
    expect(stdout.match(/^wrong\.ts\(\d+/gm)).toEqual(['wrong.ts(3', 'wrong.ts(4']);
  },
  TIMEOUT_MS,
);

test(
  'a client with the types of openapi-typescript calls every operation of a server',
  async () => {
    const { callAll } = await compiled('openapi-fetch');
    expect(await callAll(server.url)).toEqual(
      Object.fromEntries(operations.map(({ name, status }) => [name, status])),
    );
  },
  TIMEOUT_MS,
);

test(
  'the functions of orval call every operation of the server that the document names',
  async () => {
    const { callAll } = await compiled('orval');
    expect(await callAll(server.url)).toEqual(
      Object.fromEntries(operations.map(({ operationId, status }) => [operationId, status])),
    );
  },
  TIMEOUT_MS,
);

async function compiled(
  program: string,
): Promise<{ callAll: (baseUrl: string) => Promise<Record<string, number>> }> {
  return (await import(pathToFileURL(join(folder, 'compiled', `${program}.js`)).href)) as Awaited<
    ReturnType<typeof compiled>
  >;
}
