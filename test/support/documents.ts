import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The URL of the server in documents. */
const ADDRESS = 'http://127.0.0.1:4000';
const END = '--- end of one command ---';

/** A command of a document and its documented output. */
export interface Step {
  command: string;
  printed: string;
}

/**
 * Sections of docs/operations.md whose commands need a PostgreSQL server. All others run on the
 * embedded database.
 */
export const POSTGRESQL_SECTIONS = ['First user', 'Upgrades', 'Backup and restore'] as const;

/**
 * Splits a document into these second-level sections, in document order, and the rest. Throws if
 * one is missing.
 */
export function splitSections(
  document: string,
  headings: readonly string[],
): { sections: string; rest: string } {
  const parts = document.split(/^(?=## )/m);
  const headingOf = (part: string) => /^## (.*)/.exec(part)?.[1] ?? '';
  const missing = headings.filter((heading) => !parts.some((part) => headingOf(part) === heading));
  if (missing.length > 0) throw new Error(`Sections not found: ${missing.join(', ')}`);
  const isChosen = (part: string) => headings.includes(headingOf(part));
  return {
    sections: parts.filter(isChosen).join(''),
    rest: parts.filter((part) => !isChosen(part)).join(''),
  };
}

/** The commands in the `console` blocks of a document. */
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
 * Runs the commands against a server, with these settings and its data directory. Returns their
 * outputs. All run in one shell, because later ones use variables of earlier ones.
 */
export async function runSteps(
  steps: readonly Step[],
  url: string,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<string[]> {
  const script = steps
    .map(({ command }) => `${command.replaceAll(ADDRESS, url)}\necho; echo '${END}'`)
    .join('\n');
  const env = { ...process.env, DATA_DIR: dataDir, DATABASE_URL: '', ...settings };
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { env });
  return stdout
    .split(END)
    .slice(0, steps.length)
    .map((answer) => answer.trim().replaceAll(url, ADDRESS));
}

/** A pattern of the documented output. An ellipsis matches varying text. */
export function pattern(printed: string): RegExp {
  return new RegExp(
    `^${printed
      .split('…')
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^"]*?')}$`,
  );
}
