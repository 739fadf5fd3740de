import { createLogUpdate } from 'log-update';
import type { CommandContext } from './command-context.ts';

/** Minimum interval between updates of a terminal, in milliseconds. */
const REDRAW_MS = 100;
/** Minimum interval between lines without a terminal, in milliseconds. */
const PRINT_INTERVAL_MS = 5_000;
const WIDTH = 24;

/** Shows progress on standard error: a bar on a terminal, otherwise a line every few seconds. */
export class Progress {
  private readonly bar;
  private readonly startedAt;
  private shownAt;

  constructor(private readonly context: Pick<CommandContext, 'stderr' | 'clock'>) {
    const { stderr, clock } = context;
    this.bar = stderr.isTTY ? createLogUpdate(stderr) : undefined;
    this.startedAt = clock.elapsedMs();
    this.shownAt = this.bar ? -Infinity : this.startedAt;
  }

  /** Shows the text, the rate of `count` and the fraction (0 to 1), at most once per interval. */
  show(count: number, text: string, fraction?: number): void {
    const { stderr, clock } = this.context;
    const now = clock.elapsedMs();
    if (now - this.shownAt < (this.bar ? REDRAW_MS : PRINT_INTERVAL_MS)) return;
    this.shownAt = now;
    const share = fraction === undefined ? '' : `${Math.floor(Math.min(fraction, 1) * 100)} % `;
    const rate = Math.round(count / Math.max((now - this.startedAt) / 1000, 0.001));
    const line = `${share}${text} ${rate} a second.`;
    if (this.bar)
      this.bar(fraction === undefined ? line : `${barOf(Math.min(fraction, 1))} ${line}`);
    else stderr.write(`${line}\n`);
  }

  /** Removes the bar, so that other output can be printed. */
  clear(): void {
    this.bar?.clear();
    this.bar?.done();
  }
}

function barOf(fraction: number): string {
  const full = Math.round(fraction * WIDTH);
  return `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)}`;
}
