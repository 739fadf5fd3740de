import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Letter } from '../../api/mail.ts';
import { DAY_MS } from '../../core/time.ts';

const KEPT_MS = DAY_MS;

/**
 * For trying things out without a mail server: letters become files that their owner alone can read, and go with the
 * first one that is written a day later. The log tells where. What
 * they say, tokens among it, is not logged, for logs are copied to where others read them.
 */
export class Letterbox {
  private readonly directory: string;

  constructor(
    dataDir: string,
    private readonly from: string,
    private readonly log: Logger,
  ) {
    this.directory = join(dataDir, 'mail');
  }

  async send({ to, subject, text }: Letter): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    await this.removeOld();
    const file = join(this.directory, `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID().slice(0, 8)}.txt`);
    // Under its name it is whole.
    await writeFile(`${file}.part`, `From: ${this.from}\nTo: ${to}\nSubject: ${subject}\n\n${text}`, { mode: 0o600, flag: 'wx' });
    await rename(`${file}.part`, file);
    this.log.info({ event: 'mail.file', to, subject, file }, 'a mail became a file, as there is no SMTP_URL');
  }

  private async removeOld(): Promise<void> {
    for (const name of await readdir(this.directory)) {
      const path = join(this.directory, name);
      // Another letter may have been renamed, or been removed, since.
      const found = await stat(path).catch(() => undefined);
      if (found && Date.now() - found.mtimeMs > KEPT_MS) await rm(path, { force: true });
    }
  }
}
