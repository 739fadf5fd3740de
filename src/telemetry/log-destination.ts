import pino, { type DestinationStream } from 'pino';
import { counter } from '../core/metrics.ts';

/** Maximum time for which a line is buffered, in ms. */
const MAX_DELAY_MS = 100;
/** Length of the buffer at which it is written, in characters. */
const BUFFER_LENGTH = 32 * 1024;
/**
 * Maximum size of unwritten lines if the log's reader is slow, in bytes. Later lines are dropped.
 */
const MAX_UNREAD = 16 * 1024 * 1024;
const ERROR = 50;
type Destination = ReturnType<typeof pino.destination>;

/** Makes pino set `lastLevel` before it writes a line. */
const METADATA: unique symbol = Symbol.for('pino.metadata');

/**
 * Writes log lines to a file descriptor, in batches and off the event loop, because single writes
 * would cost a tenth of a request. Errors are written at once, and buffered lines when the process
 * ends.
 */
export class LogDestination implements DestinationStream {
  readonly [METADATA] = true;
  /** Set by pino. */
  lastLevel = 0;
  private text = '';
  private timer: NodeJS.Timeout | undefined;
  /** Batches that are not completely written, and the number of written bytes of the first. */
  private unwritten: string[] = [];
  private writtenBytes = 0;
  private destination: Destination;
  private readonly dropped = counter(
    'shopfront_log_lines_dropped_total',
    'Log lines that could not be written, or not in time.',
  );

  constructor(
    private readonly fd: number,
    /** Formats a line. By default, lines stay JSON. */
    private readonly format?: (line: string) => string,
    private readonly maxUnread = MAX_UNREAD,
  ) {
    this.destination = this.open();
    // Runs before pino's own listener, which then writes these lines.
    process.prependListener('exit', () => this.send());
  }

  write(line: string): void {
    this.text += this.format ? this.format(line) : line;
    if (this.lastLevel >= ERROR || this.text.length >= BUFFER_LENGTH) this.send();
    else this.timer ??= setTimeout(() => this.send(), MAX_DELAY_MS).unref();
    this.lastLevel = 0;
  }

  /** Writes all buffered lines synchronously. Pino calls it after a fatal error. */
  flushSync(): void {
    this.send();
    this.destination.flushSync();
  }

  /** Resolves when all buffered lines are written. */
  written(): Promise<void> {
    this.send();
    return new Promise((done) => this.destination.flush(() => done()));
  }

  private open(): Destination {
    // Without a minimum length, `flush` would not report when all is written.
    const destination = pino.destination({
      fd: this.fd,
      sync: false,
      minLength: 1,
      maxLength: this.maxUnread,
    });
    destination.on('drop', (text: string) => {
      this.unwritten.pop();
      this.countDropped(text);
    });
    destination.on('write', (bytes) => this.onWritten(bytes));
    // A full disk must not end the process, and failed lines are not retried forever.
    destination.on('error', () => {
      this.countDropped(Buffer.from(this.unwritten.join('')).toString('utf8', this.writtenBytes));
      this.unwritten = [];
      this.writtenBytes = 0;
      destination.destroy();
      this.destination = this.open();
    });
    return destination;
  }

  private onWritten(bytes: number): void {
    this.writtenBytes += bytes;
    for (
      let [first] = this.unwritten;
      first !== undefined && Buffer.byteLength(first) <= this.writtenBytes;
      [first] = this.unwritten
    ) {
      this.writtenBytes -= Buffer.byteLength(first);
      this.unwritten.shift();
    }
  }

  private countDropped(text: string): void {
    this.dropped.value += text.split('\n').length - 1;
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.text === '') return;
    const { text } = this;
    this.text = '';
    this.unwritten.push(text);
    this.destination.write(text);
  }
}
