import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { LogDestination } from '../../src/telemetry/request-log.ts';
import { logConsole, openLog } from '../../src/telemetry/log.ts';
import { withDirectory } from '../support/directories.ts';
import { until } from '../support/until.ts';

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/telemetry/request-log.js'));

test('console output of libraries and warnings of Node.js are lines of JSON without secrets', async () => {
  const { error, warn } = console;
  const listeners = process.listeners('warning');
  try {
    await withFile(async (lines, read) => {
      logConsole(
        openLog({ logLevel: 'info', signingSecrets: ['a-secret-of-32-bytes-or-even-more'] }, lines),
      );
      console.error(
        'failed in the background: %s',
        'a-secret-of-32-bytes-or-even-more',
        new Error('gone'),
      );
      console.warn('once\nand again');
      process.emitWarning('is deprecated', 'DeprecationWarning');
      await until(() => read().length === 3, 'three lines');
      const [first, second, third] = read();
      expect(first).toMatchObject({
        level: 40,
        event: 'console',
        msg: expect.stringMatching(/^failed in the background: (?!a-secret).*Error: gone/s),
      });
      expect(second).toMatchObject({ msg: 'once\nand again' });
      expect(third).toMatchObject({
        err: { type: 'DeprecationWarning', message: 'is deprecated' },
      });
    });
  } finally {
    Object.assign(console, { error, warn });
    process.removeAllListeners('warning');
    for (const listener of listeners) process.on('warning', listener);
  }
});

test('pending lines are written when the process exits', () => {
  const program = `
    const { LogDestination } = await import(${MODULE});
    const lines = new LogDestination(1);
    for (let number = 0; number < 5_000; number++) lines.write(number + '\\n');
    process.exit(0);`;
  const written = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  expect(written).toBe(Array.from({ length: 5_000 }, (_, number) => `${number}\n`).join(''));
});

test('a full disk does not end the process', () => {
  const full = openSync('/dev/full', 'w');
  const program = `
    const { LogDestination } = await import(${MODULE});
    const lines = new LogDestination(2);
    const timer = setInterval(() => lines.write('a line\\n'), 10);
    setTimeout(() => (clearInterval(timer), console.log('done'), process.exit(0)), 500);`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', full],
  });
  expect(printed).toBe('done\n');
  closeSync(full);
});

type Line = Record<string, unknown>;

async function withFile(
  work: (lines: LogDestination, read: () => Line[]) => Promise<void>,
): Promise<void> {
  await withDirectory(async (directory) => {
    const path = join(directory, 'log');
    const fd = openSync(path, 'w');
    // The last line may be half written.
    const read = () =>
      readFileSync(path, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line);
    await work(new LogDestination(fd), read);
    closeSync(fd);
  });
}
