import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { pattern, printedBy, stepsOf } from '../support/documents.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';

const document = await readFile('docs/leaving.md', 'utf8');

describe('docs/leaving.md: the commands of its examples print what it says', () => {
  let dataDir: string;
  const answers: string[] = [];
  const steps = stepsOf(document);

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const PORT = String(await freePort());
    // What stands between the blocks of settings is tried with those that came before: text and settings in turn.
    const parts = document.split(/^```env\n(.*?)^```/gms);
    for (let at = 0, env = {}; at < parts.length; at += 2) {
      const server = await startServer({ DATA_DIR: dataDir, PORT, ...env });
      answers.push(...(await printedBy(stepsOf(parts[at] ?? ''), server.url, dataDir)));
      await stopServer(server);
      env = { ...env, ...settingsIn(parts[at + 1] ?? '') };
    }
    // A start takes its time.
  }, 180_000);

  afterAll(() => removeDirectory(dataDir));

  test.each(steps.map(({ command, printed }, index) => ({ command, printed, index })))('$command', ({ printed, index }) => {
    expect(answers[index]).toMatch(pattern(printed));
  });
});

function settingsIn(block: string): Record<string, string> {
  return Object.fromEntries([...block.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));
}
