import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The address that documents write for the server. */
const ADDRESS = 'http://127.0.0.1:4000';
const END = '--- end of one command ---';

/** A command of a document and what the document says that it prints. */
export interface Step {
  command: string;
  printed: string;
}

/** The commands in the blocks of a document that are marked `console`. */
export function stepsOf(document: string): Step[] {
  const blocks = [...document.matchAll(/^```console\n(.*?)^```/gms)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...printed] = step.split('\n');
        return { command, printed: printed.join('\n').trim() };
      }),
  );
}

/**
 * What the commands print, run against a server, with these settings beside its data directory. One shell runs all of them, for later ones
 * use what earlier ones have set.
 */
export async function printedBy(
  steps: readonly Step[],
  url: string,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<string[]> {
  const script = steps.map(({ command }) => `${command.replaceAll(ADDRESS, url)}\necho; echo '${END}'`).join('\n');
  const env = { ...process.env, DATA_DIR: dataDir, DATABASE_URL: '', ...settings };
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { env });
  return stdout
    .split(END)
    .slice(0, steps.length)
    .map((answer) => answer.trim().replaceAll(url, ADDRESS));
}

/** What a document says that is printed. An ellipsis stands for what differs from run to run. */
export function pattern(printed: string): RegExp {
  return new RegExp(
    `^${printed
      .split('…')
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^"]*?')}$`,
  );
}
