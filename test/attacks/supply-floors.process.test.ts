import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { withDirectory } from '../support/directories.ts';

const SCRIPT = resolve('.ci/supply.js');
interface Locked {
  name?: string;
  version?: string;
  license?: string;
  integrity?: string;
  resolved?: string;
  link?: boolean;
  dev?: boolean;
  hasInstallScript?: boolean;
  devDependencies?: Record<string, string>;
}

/** Input of the script, to be changed in one place. */
interface Tree {
  manifest: {
    dependencies: Record<string, string>;
    devDependencies?: Record<string, string>;
    allowScripts: Record<string, boolean>;
  };
  lock: { lockfileVersion: number; packages: Record<string, Locked> };
  floors: { package: string; floor: string | string[] | null }[];
  page: string;
}

interface Verdict {
  code: number;
  lines: string[];
}

describe('the floors', () => {
  let whole: Verdict;

  beforeAll(async () => {
    whole = await supply('.');
  });

  test('X7 the tree meets every floor, and has its reasons, licences, sources and hashes', () => {
    expect(whole).toEqual({
      code: 0,
      lines: [
        expect.stringMatching(
          /^supply of shopfront: \d+ direct dependencies and \d{3,4} packages, \d+ of them shipped, hold \d+ floors; 1 advisory accepted$/,
        ),
      ],
    });
  });

  const ms = 'node_modules/ms';
  const registry = 'https://registry.example';
  const bad: Locked = { version: '1.0.0', license: 'MIT', integrity: `sha512-${'A'.repeat(86)}==` };
  const locked = (path: string, change: Locked) => (tree: Tree) => {
    tree.lock.packages[path] = { ...tree.lock.packages[path], ...change };
  };
  const without = (path: string, key: keyof Locked) => (tree: Tree) => {
    delete tree.lock.packages[path]?.[key];
  };
  const wanted = (name: string, version: string) => (tree: Tree) => {
    tree.manifest.dependencies[name] = version;
  };
  const paged = (pattern: RegExp, replacement: string) => (tree: Tree) => {
    tree.page = tree.page.replace(pattern, replacement);
  };
  const allowed = (scripts: Record<string, boolean>) => (tree: Tree) => {
    const { bcrypt: _, ...others } = tree.manifest.allowScripts;
    tree.manifest.allowScripts = { ...others, ...scripts };
  };

  test.each<[string, (tree: Tree) => void, RegExp[]]>([
    [
      'a version below its floor',
      locked('node_modules/jws', { version: '4.0.0' }),
      [/jws 4\.0\.0: CVE-2025-65945/],
    ],
    [
      'a pre-release of the floor',
      locked('node_modules/jws', { version: '4.0.1-rc.1' }),
      [/jws 4\.0\.1-rc\.1: CVE-2025-65945/],
    ],
    [
      'an older major below its own floor',
      locked('node_modules/jws', { version: '3.2.2' }),
      [/jws 3\.2\.2: CVE-2025-65945/],
    ],
    [
      'a copy of a package deep in the tree',
      locked('node_modules/test-exclude/node_modules/brace-expansion', { version: '2.1.6' }),
      [/GHSA-q2hr-2g5m-vwhr/],
    ],
    [
      'a package under another name',
      locked('node_modules/signer', { ...bad, name: 'jws' }),
      [/signer 1\.0\.0: CVE-2025-65945/],
    ],
    [
      'a version with malware in it',
      locked('node_modules/debug', { version: '4.4.2' }),
      [/debug 4\.4\.2: GHSA-8mgj-vmr8-frr6/],
    ],
    [
      'a version that cannot be read',
      locked('node_modules/jws', { version: 'latest' }),
      [/jws latest: CVE-2025-65945/],
    ],
    [
      'an accepted advisory in a shipped package',
      without('node_modules/sprintf-js', 'dev'),
      [/sprintf-js 1\.0\.3: GHSA-hp3w-g68c-fv3c/],
    ],
    [
      'an accepted advisory of a missing package',
      locked('node_modules/sprintf-js', { version: '9.0.0' }),
      [/accepted, but sprintf-js is no longer installed/],
    ],
    [
      'a floor below itself',
      (tree) =>
        tree.floors
          .filter((entry) => entry.package === 'jws')
          .forEach((entry) => (entry.floor = '4.0.0')),
      [/jws 4\.0\.0 is below itself/],
    ],

    [
      'a range instead of a version',
      wanted('zod', '^4.6.7'),
      [/zod: .* no exact version/, /dependencies are not those/, /zod is not \^4\.6\.7/],
    ],
    [
      'a tag instead of a version',
      wanted('zod', 'latest'),
      [/zod: .* no exact version/, /dependencies are not those/, /zod is not latest/],
    ],
    [
      'a repository instead of a version',
      wanted('zod', 'github:zod/zod'),
      [/zod: .* no exact version/, /dependencies are not those/, /zod is not github/],
    ],
    [
      'a dependency without a line',
      paged(/^\| `zod`.*\n/m, ''),
      [/zod: .* gives no reason/, /zod: .* says no licence/],
    ],
    [
      'a dependency without a reason',
      paged(/^(\| `zod` *\|)[^|]*/m, '$1 '),
      [/zod: .* gives no reason/],
    ],
    [
      'a dependency with another licence',
      paged(/^(\| `zod`.*)MIT/m, '$1ISC'),
      [/zod: .* says ISC, the package says MIT/],
    ],

    [
      'a licence that is not allowed',
      locked(ms, { license: 'GPL-3.0-only' }),
      [/ms: its licence is GPL-3\.0-only/],
    ],
    [
      'a licence that is partly not allowed',
      locked(ms, { license: '(MIT AND GPL-3.0-only)' }),
      [/ms: its licence is \(MIT AND/],
    ],
    ['no licence', without(ms, 'license'), [/ms: its licence is undefined/]],

    ['no hash', without(ms, 'integrity'), [/ms: no sha512/]],
    [
      'a weak hash',
      locked(ms, { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }),
      [/ms: no sha512/],
    ],
    [
      'a repository as source',
      locked(ms, { resolved: 'git+ssh://git@git.example/ms.git#0123abc' }),
      [/ms: git\+ssh.* no registry/],
    ],
    [
      'a file as source',
      locked(ms, { resolved: 'file:../ms-2.1.3.tgz' }),
      [/ms: file:.* no registry/],
    ],
    [
      'a source without TLS',
      locked(ms, { resolved: 'http://registry.example/ms/-/ms-2.1.3.tgz' }),
      [/ms: http:.* no registry/],
    ],
    [
      'an arbitrary URL as source',
      locked(ms, { resolved: `${registry}/ms.tgz` }),
      [/ms: https:.* no registry/],
    ],
    [
      'the tarball of another package',
      locked(ms, { resolved: `${registry}/sm/-/sm-2.1.3.tgz` }),
      [/ms: https:.* no registry/],
    ],
    [
      'the tarball of another version',
      locked(ms, { resolved: `${registry}/ms/-/ms-2.0.0.tgz` }),
      [/ms: https:.* no registry/],
    ],
    ['a linked folder', locked(ms, { link: true }), [/ms: undefined is no registry/]],

    [
      'a version that is not locked',
      wanted('zod', '4.6.6'),
      [/dependencies are not those/, /zod is not 4\.6\.6/],
    ],
    [
      'another version in the lock file',
      locked('node_modules/zod', { version: '4.6.8' }),
      [/zod is not 4\.6\.7/],
    ],
    [
      'a missing dependency of a package',
      ({ lock }) => delete lock.packages['node_modules/ee-first'],
      [/ee-first, which node_modules\/on-finished needs/],
    ],
    [
      'a lock file of another kind',
      ({ lock }) => (lock.lockfileVersion = 2),
      [/its version is not 3/],
    ],

    [
      'graphql-upload',
      locked('node_modules/graphql-upload', bad),
      [/graphql-upload: must not be there/],
    ],
    [
      'graphql-upload deep in the tree',
      locked('node_modules/express/node_modules/graphql-upload', bad),
      [/graphql-upload: must not be there/],
    ],
    [
      'graphql-upload under another name',
      locked('node_modules/files', { ...bad, name: 'graphql-upload' }),
      [/files: must not be there/],
    ],
    [
      'a known malware package',
      locked('node_modules/flatmap-stream', bad),
      [/flatmap-stream: must not be there/],
    ],

    ['an install script', locked(ms, { hasInstallScript: true }), [/ms: runs a script/]],
    ['a script that is no longer named', allowed({}), [/bcrypt: runs a script/]],
    [
      'a script named for another version',
      allowed({ 'bcrypt@5.1.1': true }),
      [/bcrypt: runs a script/],
    ],
  ])('X7 the script reports %s', async (_, change, problems) => {
    const { code, lines } = await broken(change);
    expect(lines.slice(1).filter((line) => !whole.lines.includes(line))).toEqual(
      problems.map((problem) => expect.stringMatching(problem)),
    );
    expect(code).toBe(1);
  });

  test.each<[string, (tree: Tree) => void]>([
    ['a licence of choice, one allowed', locked(ms, { license: '(MIT OR GPL-3.0-only)' })],
    ['any licence in development', locked('node_modules/jest', { license: 'GPL-3.0-only' })],
    ['the right tarball of a registry', locked(ms, { resolved: `${registry}/ms/-/ms-2.1.3.tgz` })],
    [
      'the right tarball of a scope',
      locked('node_modules/@types/ms', { resolved: `${registry}/@types/ms/-/ms-2.1.0.tgz` }),
    ],
    ['a script named for this version', allowed({ 'bcrypt@6.0.0': true })],
    ['a script that is disabled', allowed({ bcrypt: false })],
  ])('X7 the script accepts %s', async (_, change) => {
    const { code, lines } = await broken(change);
    expect({ code, problems: lines.slice(1) }).toEqual({
      code: whole.code,
      problems: whole.lines.slice(1),
    });
  });

  test('X7 the script reports all problems at once', async () => {
    const { code, lines } = await broken((tree) => {
      locked('node_modules/jws', { version: '4.0.0' })(tree);
      locked(ms, { license: 'GPL-3.0-only', hasInstallScript: true })(tree);
      locked('node_modules/graphql-upload', bad)(tree);
      without('node_modules/vary', 'integrity')(tree);
      wanted('zod', '4.6.6')(tree);
      paged(/^\| `pino`.*\n/m, '')(tree);
    });
    expect(code).toBe(1);
    for (const problem of [
      /jws 4/,
      /ms: its licence/,
      /ms: runs/,
      /graphql-upload/,
      /vary: no sha512/,
      /zod is not/,
      /pino: /,
    ])
      expect(lines).toContainEqual(expect.stringMatching(problem));
  });
});

async function wholeTree(): Promise<Tree> {
  const paths = [
    'package.json',
    'package-lock.json',
    '.ci/safe-floors.json',
    'docs/generated/dependencies.md',
  ];
  const [manifest = '', lock = '', floors = '', page = ''] = await Promise.all(
    paths.map((path) => readFile(path, 'utf8')),
  );
  return {
    manifest: JSON.parse(manifest),
    lock: JSON.parse(lock),
    floors: JSON.parse(floors),
    page,
  };
}

/** Runs the script on a changed copy of the tree. */
async function broken(change: (tree: Tree) => unknown): Promise<Verdict> {
  const tree = await wholeTree();
  change(tree);
  return withDirectory(async (folder) => {
    await mkdir(join(folder, '.ci'));
    await mkdir(join(folder, 'docs/generated'), { recursive: true });
    for (const linked of ['node_modules', 'examples'])
      await symlink(resolve(linked), join(folder, linked));
    await writeFile(join(folder, 'package.json'), JSON.stringify(tree.manifest));
    await writeFile(join(folder, 'package-lock.json'), JSON.stringify(tree.lock));
    await writeFile(join(folder, '.ci/safe-floors.json'), JSON.stringify(tree.floors));
    await writeFile(join(folder, 'docs/generated/dependencies.md'), tree.page);
    return supply(folder);
  });
}

function supply(folder: string): Promise<Verdict> {
  return new Promise((done) => {
    execFile(process.execPath, [SCRIPT, folder], (error, stdout, stderr) => {
      done({ code: Number(error?.code ?? 0), lines: (stdout + stderr).trim().split('\n') });
    });
  });
}
