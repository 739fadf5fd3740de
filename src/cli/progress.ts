import { createLogUpdate } from 'log-update';
import type { CommandContext } from './command-context.ts';

/** How often a terminal is drawn anew, in ms. */
const DRAWN_MS = 100;
/** How often a line is printed where there is no terminal, in ms. */
const PRINTED_MS = 5_000;
const WIDTH = 24;

/** Shows how far something has come on standard error: as a bar on a terminal, else as a line every few seconds. */
export class Progress {
  private readonly bar;
  private readonly begun;
  private shown;

  constructor(private readonly context: Pick<CommandContext, 'stderr' | 'clock'>) {
    const { stderr, clock } = context;
    this.bar = stderr.isTTY ? createLogUpdate(stderr) : undefined;
    this.begun = clock.elapsedMs();
    this.shown = this.bar ? -Infinity : this.begun;
  }

  /** Shows it, unless it was shown a moment ago: `count` of what is done, the text, and how much of the whole that is, from 0 to 1. */
  show(count: number, text: string, fraction?: number): void {
    const { stderr, clock } = this.context;
    const now = clock.elapsedMs();
    if (now - this.shown < (this.bar ? DRAWN_MS : PRINTED_MS)) return;
    this.shown = now;
    const share = fraction === undefined ? '' : `${Math.floor(Math.min(fraction, 1) * 100)} % `;
    const rate = Math.round(count / Math.max((now - this.begun) / 1000, 0.001));
    const line = `${share}${text} ${rate} a second.`;
    if (this.bar) this.bar(fraction === undefined ? line : `${drawn(Math.min(fraction, 1))} ${line}`);
    else stderr.write(`${line}\n`);
  }

  /** Takes the bar away, so that something else can be printed. */
  clear(): void {
    this.bar?.clear();
    this.bar?.done();
  }
}

function drawn(fraction: number): string {
  const full = Math.round(fraction * WIDTH);
  return `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)}`;
}
