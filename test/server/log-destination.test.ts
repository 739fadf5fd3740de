import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { register } from 'prom-client';
import { LogDestination } from '../../src/telemetry/log-destination.ts';
import { logConsole, openLog } from '../../src/telemetry/log.ts';
import { withDirectory } from '../support/directories.ts';
import { until } from '../support/until.ts';

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/telemetry/log-destination.js'));

test('lines of all writers are in order, some of them written together', async () => {
  await withFile(async (lines, read) => {
    const log = openLog({ logLevel: 'info' }, lines);
    for (let number = 0; number < 1_000; number++) {
      log.info({ number }, 'a line of pino');
      lines.write(`{"number":${number}}\n`);
    }
    await until(() => read().length === 2_000);
    expect(read().map(({ number }) => number)).toEqual(
      Array.from({ length: 2_000 }, (_, index) => Math.floor(index / 2)),
    );
  });
});

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

test('nothing is left to write once written() resolves', async () => {
  await withFile(async (lines, read) => {
    lines.write('{"number":1}\n');
    await lines.written();
    expect(read()).toHaveLength(1);
    await lines.written();
    expect(read()).toHaveLength(1);
  });
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

test('lines that a full disk does not take are counted', () => {
  const full = openSync('/dev/full', 'w');
  const program = `
    const { LogDestination } = await import(${MODULE});
    const lines = new LogDestination(2);
    for (let number = 0; number < 5_000; number++) lines.write('a line of the log\\n');
    const end = () => (console.log(lines.dropped.value), process.exit(0));
    setInterval(() => lines.dropped.value >= 5_000 && end(), 10);
    setTimeout(end, 60_000);`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', full],
  });
  expect(printed).toBe('5000\n');
  closeSync(full);
});

test('unread lines above the maximum size are dropped and counted, and the process continues', async () => {
  await withDirectory(async (directory) => {
    const path = join(directory, 'pipe');
    execFileSync('mkfifo', [path]);
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const lines = new LogDestination(fd, undefined, 256 * 1024);
    const line = `${'x'.repeat(1023)}\n`;
    for (let number = 0; number < 1024; number++) lines.write(line);
    const dropped = await droppedLines();
    expect(dropped).toBe(768);
    const chunk = Buffer.alloc(64 * 1024);
    let read = 0;
    await until(() => {
      try {
        for (;;) read += readSync(fd, chunk);
      } catch {
        return read >= 256 * 1024;
      }
    });
    expect(read).toBe(256 * 1024);
    closeSync(fd);
  });
});

async function droppedLines(): Promise<number> {
  const { values: [{ value } = { value: -1 }] = [] } =
    (await register.getSingleMetric('shopfront_log_lines_dropped_total')?.get()) ?? {};
  return value;
}

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
