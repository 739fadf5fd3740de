import { PassThrough } from 'node:stream';
import { describe, expect, test } from '../support/jest.ts';
import { Progress } from '../../src/cli/progress.ts';
import { command } from '../support/command.ts';
import { HEADER, INK, lines } from '../support/import-files.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

describe('progress', () => {
  test('without a terminal, is a line every five seconds, with the progress and the rate', () => {
    const { progress, stderr, pass } = start();
    progress.show(10, 'Done: 10.', 0.1);
    pass(4_999);
    progress.show(20, 'Done: 20.', 0.2);
    expect(printed(stderr)).toBe('');
    pass(1);
    progress.show(30, 'Done: 30.', 0.3);
    progress.show(31, 'Done: 31.', 0.31);
    expect(printed(stderr)).toBe('30 % Done: 30. 6 a second.\n');
    pass(5_000);
    progress.show(100, 'Done: 100.');
    progress.clear();
    expect(printed(stderr)).toBe('Done: 100. 10 a second.\n');
  });

  test('on a terminal, is a bar drawn at once and then ten times a second, and removed at the end', () => {
    const { progress, stderr, pass } = start(true);
    pass(1_000);
    progress.show(50, 'Done: 50.', 0.5);
    expect(printed(stderr)).toContain(
      `${'█'.repeat(12)}${'░'.repeat(12)} 50 % Done: 50. 50 a second.\n`,
    );
    pass(99);
    progress.show(51, 'Done: 51.', 0.51);
    expect(printed(stderr)).toBe('');
    pass(1);
    progress.show(52, 'Done: 52.', 0.52);
    expect(printed(stderr)).toContain('52 % Done: 52. 47 a second.');
    progress.clear();
    expect(printed(stderr)).toContain('\u001b[2K');
  });
});

describe('an import', () => {
  useShop();

  test('shows its progress, by the clock of the command', async () => {
    let now = 0;
    const clock = { now: () => new Date(), elapsedMs: () => (now += 5_000) };
    const input = lines(HEADER, INK);
    expect(
      await command(['products', 'import', '-', '--format', 'csv'], workerDatabase(), input, {
        clock,
      }),
    ).toMatchObject({
      code: 0,
      stderr: 'Created: 1. Changed: 0. Unchanged: 0. Refused: 0. 0 a second.\n',
    });
  });
});

function start(isTTY = false) {
  const stderr = Object.assign(new PassThrough(), { isTTY, columns: 120 });
  let now = 0;
  const progress = new Progress({
    stderr,
    clock: { now: () => new Date(now), elapsedMs: () => now },
  });
  const pass = (ms: number): void => {
    now += ms;
  };
  return { progress, stderr, pass };
}

/** Returns the output since the last call. */
function printed(stream: PassThrough): string {
  return String((stream.read() as Buffer | null) ?? '');
}
