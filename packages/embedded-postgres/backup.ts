import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg, { type Submittable } from 'pg';

// Kinds of messages in the copied data (PostgreSQL, 54.4, BASE_BACKUP).
const DATA = 'd'.charCodeAt(0);
const BASE_BACKUP =
  "BASE_BACKUP (LABEL 'shopfront', CHECKPOINT 'fast', WAL true, MANIFEST 'no', COMPRESSION 'gzip')";

/** Members of the driver's connection that its types omit. */
interface Wire {
  stream: { pause(): void; resume(): void };
  query(text: string): void;
}

/**
 * Writes a consistent copy of all databases of the running server at this URL into a new tar.gz
 * file that only its owner may read, as pg_basebackup does. Clients of the server are not affected.
 */
export async function writeBackup(url: string, file: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig);
  await client.connect();
  try {
    const archive = client.query(new BaseBackup()).stream;
    await pipeline(archive, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }));
  } finally {
    await client.end();
  }
}

/** The command of the replication protocol, with the archive as a stream. */
class BaseBackup implements Submittable {
  readonly stream: Readable;
  private wire: Wire | undefined;

  constructor() {
    this.stream = new Readable({ read: () => this.wire?.stream.resume() });
  }

  submit(connection: unknown): void {
    this.wire = connection as Wire;
    this.wire.query(BASE_BACKUP);
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    // Copied, because the driver reuses its buffer.
    if (chunk[0] === DATA && !this.stream.push(Buffer.from(chunk.subarray(1))))
      this.wire?.stream.pause();
  }

  handleReadyForQuery(): void {
    this.stream.push(null);
  }

  handleError(error: Error): void {
    this.stream.destroy(error);
  }

  // The positions in the log are in the archive, too.
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}
}
