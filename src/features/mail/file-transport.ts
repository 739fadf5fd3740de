import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { MailMessage } from '../../api/mail.ts';
import { DAY_MS } from '../../core/time.ts';

/** Retention of mail files, in ms. */
const RETENTION_MS = DAY_MS;

/**
 * Transport for development without a mail server. Writes each mail to a file that only its owner
 * can read, logs the path, and deletes files older than a day. The recipient and the content, which
 * may include a token, are not logged, because logs are copied to places where others read them.
 */
export class FileTransport {
  private readonly directory: string;

  constructor(
    dataDir: string,
    private readonly from: string,
    private readonly log: Logger,
  ) {
    this.directory = join(dataDir, 'mail');
  }

  async send({ to, subject, text }: MailMessage): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    await this.removeOld();
    const file = join(
      this.directory,
      `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID().slice(0, 8)}.txt`,
    );
    // Renamed when complete.
    await writeFile(
      `${file}.part`,
      `From: ${this.from}\nTo: ${to}\nSubject: ${subject}\n\n${text}`,
      { mode: 0o600, flag: 'wx' },
    );
    await rename(`${file}.part`, file);
    this.log.info(
      { event: 'mail.file', subject, file },
      'Mail written to a file, because SMTP_URL is not set',
    );
  }

  private async removeOld(): Promise<void> {
    for (const name of await readdir(this.directory)) {
      const path = join(this.directory, name);
      // The file may have been renamed or deleted meanwhile.
      const stats = await stat(path).catch(() => undefined);
      if (stats && Date.now() - stats.mtimeMs > RETENTION_MS) await rm(path, { force: true });
    }
  }
}
