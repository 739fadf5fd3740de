import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { pattern, runSteps, stepsOf } from '../support/documents.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';

/** Timeout of all commands and three starts of the server, in ms. */
const TIMEOUT_MS = 420_000;

const document = await readFile('docs/migrate.md', 'utf8');

describe('docs/migrate.md: the commands of its examples print the documented output', () => {
  let dataDir: string;
  const answers: string[] = [];
  const steps = stepsOf(document);

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const PORT = String(await freePort());
    // Runs the commands between two blocks of settings with the settings of all earlier blocks.
    const parts = document.split(/^```env\n(.*?)^```/gms);
    for (let at = 0, env = {}; at < parts.length; at += 2) {
      const server = await startServer({ DATA_DIR: dataDir, PORT, ...env });
      answers.push(...(await runSteps(stepsOf(parts[at] ?? ''), server.url, dataDir, env)));
      await stopServer(server);
      env = { ...env, ...settingsIn(parts[at + 1] ?? '') };
    }
  }, TIMEOUT_MS);

  afterAll(() => removeDirectory(dataDir));

  test.each(steps.map(({ command, printed }, index) => ({ command, printed, index })))(
    '$command',
    ({ printed, index }) => {
      expect(answers[index]).toMatch(pattern(printed));
    },
  );
});

function settingsIn(block: string): Record<string, string> {
  return Object.fromEntries(
    [...block.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
}
