import pino, { type DestinationStream } from 'pino';
import { counter } from '../core/metrics.ts';

/** How long a line may wait for others, in ms. */
const WAIT_MS = 100;
/** So many characters are written at once. */
const ENOUGH = 32 * 1024;
/** So many bytes wait at most for a reader of the log who is too slow: what comes then is dropped, and the server goes on. */
const MAX_UNREAD = 16 * 1024 * 1024;
const ERROR = 50;
type Destination = ReturnType<typeof pino.destination>;

/** Has pino say, before it writes a line, which level that is of. */
const METADATA: unique symbol = Symbol.for('pino.metadata');

/**
 * Lines of the log on their way to a file descriptor: those of a while in one piece, and off the event loop, for to write each by itself would
 * cost a tenth of a request. An error waits for nothing, and what waits is written when the process ends.
 */
export class LogLines implements DestinationStream {
  readonly [METADATA] = true;
  /** Set by pino. */
  lastLevel = 0;
  private text = '';
  private timer: NodeJS.Timeout | undefined;
  /** The pieces that the destination was given and has not written, and how many bytes it has written of the first. */
  private given: string[] = [];
  private begun = 0;
  private destination: Destination;
  private readonly dropped = counter('shopfront_log_lines_dropped_total', 'Lines of the log that could not be written, or not in time.');

  constructor(
    private readonly fd: number,
    private readonly maxUnread = MAX_UNREAD,
  ) {
    this.destination = this.open();
    // Before pino's own, which then writes what it has been given.
    process.prependListener('exit', () => this.send());
  }

  write(line: string): void {
    this.text += line;
    if (this.lastLevel >= ERROR || this.text.length >= ENOUGH) this.send();
    else this.timer ??= setTimeout(() => this.send(), WAIT_MS).unref();
    this.lastLevel = 0;
  }

  /** Writes all that waits before it returns. Pino asks for it after a fatal error. */
  flushSync(): void {
    this.send();
    this.destination.flushSync();
  }

  /** Resolves when all that waits is written. */
  written(): Promise<void> {
    this.send();
    return new Promise((done) => this.destination.flush(() => done()));
  }

  private open(): Destination {
    // With a least length, or it would not tell when all is written.
    const made = pino.destination({ fd: this.fd, sync: false, minLength: 1, maxLength: this.maxUnread });
    made.on('drop', (text: string) => {
      this.given.pop();
      this.lose(text);
    });
    made.on('write', (bytes) => this.forget(bytes));
    // A disk that is full is no reason to end, and what could not be written is not tried for ever.
    made.on('error', () => {
      this.lose(Buffer.from(this.given.join('')).toString('utf8', this.begun));
      this.given = [];
      this.begun = 0;
      made.destroy();
      this.destination = this.open();
    });
    return made;
  }

  private forget(bytes: number): void {
    this.begun += bytes;
    for (let [first] = this.given; first !== undefined && Buffer.byteLength(first) <= this.begun; [first] = this.given) {
      this.begun -= Buffer.byteLength(first);
      this.given.shift();
    }
  }

  private lose(text: string): void {
    this.dropped.value += text.split('\n').length - 1;
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.text === '') return;
    const { text } = this;
    this.text = '';
    this.given.push(text);
    this.destination.write(text);
  }
}
