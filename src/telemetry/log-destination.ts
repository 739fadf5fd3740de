import pino, { type DestinationStream } from 'pino';

/** Maximum time for which a line is buffered, in ms. */
const MAX_DELAY_MS = 100;
/** Length of the buffer at which it is written, in characters. */
const BUFFER_LENGTH = 32 * 1024;
/** Maximum size of unwritten lines if their reader is slow, in bytes. Later lines are dropped. */
const MAX_UNREAD = 16 * 1024 * 1024;

/**
 * Writes log lines to a file descriptor, in batches and off the event loop, because single writes
 * would cost a tenth of a request. Buffered lines are written when the process ends.
 */
export class LogDestination implements DestinationStream {
  private text = '';
  private timer: NodeJS.Timeout | undefined;
  private destination;

  constructor(private readonly fd: number) {
    this.destination = this.open();
    // Runs before pino's own listener, which then writes these lines.
    process.prependListener('exit', () => this.send());
  }

  write(line: string): void {
    this.text += line;
    if (this.text.length >= BUFFER_LENGTH) this.send();
    else this.timer ??= setTimeout(() => this.send(), MAX_DELAY_MS).unref();
  }

  /** Writes all buffered lines synchronously. Pino calls it after a fatal error. */
  flushSync(): void {
    this.send();
    this.destination.flushSync();
  }

  private open() {
    const options = { fd: this.fd, sync: false, minLength: 1, maxLength: MAX_UNREAD };
    const destination = pino.destination(options);
    // A full disk must not end the process, and failed lines are not retried forever.
    destination.on('error', () => {
      destination.destroy();
      this.destination = this.open();
    });
    return destination;
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.text !== '') this.destination.write(this.text);
    this.text = '';
  }
}
