// Checks package.json and package-lock.json and prints all problems. Reads only local files.
// .ci/safe-floors.json has the advisories: the vulnerable versions (`below`) and the first fixed one
// of each line (`floor`, null if there is none). Where there is none, `accepted` has the reason why
// the package.json of this name keeps a development dependency.
//   node .ci/supply.js [folder] [folder with the floors, if different]
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const FIELDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];
const ALLOWED_LICENCES = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  '0BSD',
  'Unlicense',
  'CC0-1.0',
  'Python-2.0',
]);
/** Packages that are forbidden in every version, and why. */
const NEVER = new Map([
  [
    'graphql-upload',
    'its multipart requests get past the check that keeps other sites out, and nothing here takes files',
  ],
  ['apollo-server', 'CVE-2026-23897, and it no longer gets fixes'],
  ['apollo-server-core', 'GHSA-9q82-xgwf-vj6h, and it no longer gets fixes'],
  ['event-stream', 'GHSA-mh6f-8j2x-4483: it was given to somebody who put malware into it'],
  ['flatmap-stream', 'GHSA-mh6f-8j2x-4483: it is that malware'],
]);

const root = process.argv[2] ?? join(import.meta.dirname, '..');
const projectRoot = process.argv[3] ?? root;
const json = async (...path) => JSON.parse(await readFile(join(...path), 'utf8'));

const manifest = await json(root, 'package.json');
const lock = await json(root, 'package-lock.json');
const floors = await json(projectRoot, '.ci', 'safe-floors.json');

/** The manifests of the lock file by folder: of the root and of the workspaces. */
const manifests = new Map([['', manifest]]);
for (const folder of manifest.workspaces ?? [])
  manifests.set(folder, await json(root, folder, 'package.json'));

const direct = [...manifests].flatMap(([folder, own]) =>
  FIELDS.flatMap((field) =>
    Object.entries(own[field] ?? {}).map(([name, version]) => ({ folder, name, version })),
  ),
);
const packages = Object.entries(lock.packages)
  // Without the workspaces and the links to them.
  .filter(([path, { link, resolved }]) => !manifests.has(link ? resolved : path))
  .map(([path, entry]) => ({
    ...entry,
    path,
    name: entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
  }));
const shipped = packages.filter(({ dev }) => !dev);

const problems = [
  ...belowFloors(),
  ...inexact(),
  ...licences(),
  ...sources(),
  ...disagreements(),
  ...forbidden(),
  ...installScripts(),
];
if (problems.length > 0) {
  console.error(
    `supply: ${problems.length} problem(s)\n${problems.map((problem) => `- ${problem}`).join('\n')}`,
  );
  process.exit(1);
}
const accepted = floors.filter(acceptedHere).length;
console.log(
  `supply of ${manifest.name}: ${direct.length} direct dependencies and ${packages.length} packages, ${shipped.length} of them shipped, ` +
    `hold ${floors.length - accepted} floors; ${accepted} advisory accepted`,
);

function belowFloors() {
  return floors.flatMap((entry) => {
    const { package: name, floor, below, advisory, what } = entry;
    const reason = acceptedHere(entry);
    const good = [floor ?? []].flat();
    const wrong = good
      .filter((version) => within(version, below))
      .map((version) => `safe-floors.json: ${name} ${version} is below itself`);
    const bad = packages.filter((found) => found.name === name && within(found.version, below));
    // Development dependencies without a fixed version may be accepted.
    const found = bad
      .filter(({ dev }) => !(reason && dev))
      .map(
        ({ path, version }) =>
          `${path} ${version}: ${advisory}: ${what} Take ${good.join(' or ') || 'something else'}.`,
      );
    const over =
      reason && bad.length === 0
        ? [`safe-floors.json: ${advisory} is accepted, but ${name} is no longer installed`]
        : [];
    return [...wrong, ...found, ...over];
  });
}

// Advisories are accepted for each package.json by its name.
function acceptedHere(entry) {
  return entry.accepted?.[manifest.name];
}

function inexact() {
  return direct
    .filter(({ version }) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(({ name, version }) => `${name}: "${version}" in package.json is no exact version`);
}

function licences() {
  // "(MIT AND ISC)" needs both, "(MIT OR GPL-3.0-only)" one of them.
  const allowed = (expression) =>
    expression
      .replaceAll(/[()]/g, '')
      .split(' OR ')
      .some((choice) => choice.split(' AND ').every((licence) => ALLOWED_LICENCES.has(licence)));
  return shipped
    .filter(({ license }) => !allowed(license ?? ''))
    .map(({ path, license }) => `${path}: its licence is ${license}, and it is shipped`);
}

function sources() {
  // Accepts any registry: the paths of tarballs are equal.
  const tarball = ({ name, version }) =>
    `/${name}/-/${name.slice(name.lastIndexOf('/') + 1)}-${version}.tgz`;
  const fromRegistry = (found) =>
    !found.link &&
    (found.resolved === undefined ||
      (found.resolved.startsWith('https://') && found.resolved.endsWith(tarball(found))));
  return [
    ...packages
      .filter((found) => !fromRegistry(found))
      .map(({ path, resolved }) => `${path}: ${resolved} is no registry over https`),
    ...packages
      .filter(({ integrity = '' }) => !/^sha512-[\w+/]{86}==$/.test(integrity))
      .map(({ path }) => `${path}: no sha512 in the lock file`),
  ];
}

function disagreements() {
  const locked = lock.packages;
  const same = (one = {}, another = {}) =>
    Object.keys({ ...one, ...another }).every((name) => one[name] === another[name]);
  const differing = [...manifests].flatMap(([folder, own]) =>
    FIELDS.filter((field) => !same(locked[folder]?.[field], own[field])),
  );
  const other = direct.filter(
    ({ folder, name, version }) => locked[installedAt(folder, name)]?.version !== version,
  );
  // Resolves a package like Node, in each folder upwards.
  const isLocked = (from, name) => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
      if (locked[`${at}${at && '/'}node_modules/${name}`]) return true;
      if (at === '') return false;
    }
  };
  // Builds of development tools for platforms that we do not build on may be absent.
  const wanted = ({ dependencies, optionalDependencies, dev }) =>
    Object.keys({ ...dependencies, ...(dev ? {} : optionalDependencies) });
  const missing = packages.flatMap((found) =>
    wanted(found)
      .filter((name) => !isLocked(found.path, name))
      .map((name) => `package-lock.json: ${name}, which ${found.path} needs, is not in it`),
  );
  return [
    ...(lock.lockfileVersion === 3 ? [] : ['package-lock.json: its version is not 3']),
    ...differing.map((field) => `package-lock.json: its ${field} are not those of package.json`),
    ...other.map(({ name, version }) => `package-lock.json: ${name} is not ${version} in it`),
    ...missing,
  ];
}

/** Returns the path of a direct dependency: npm installs some in the folder of their workspace. */
function installedAt(folder, name) {
  const own = join(folder, 'node_modules', name);
  return lock.packages[own] ? own : `node_modules/${name}`;
}

function forbidden() {
  return packages
    .filter(({ name }) => NEVER.has(name))
    .map(({ path, name }) => `${path}: must not be there: ${NEVER.get(name)}`);
}

function installScripts() {
  // npm also runs the scripts of unlisted packages, so each must be allowed or denied.
  const named = Object.keys(manifest.allowScripts ?? {});
  const names = ({ name, version }) => named.includes(name) || named.includes(`${name}@${version}`);
  return packages
    .filter((found) => found.hasInstallScript && !names(found))
    .map(
      ({ path }) =>
        `${path}: runs a script when it is installed, and allowScripts of package.json neither allows nor refuses it`,
    );
}

/**
 * Returns whether a version is in a range such as "<1.1.21 || >=2.0.0 <2.1.7". A pre-release counts
 * as its release at the lower bound and as less than it at the upper one.
 */
function within(version, range) {
  const [, numbers, preRelease] = /^(\d+\.\d+\.\d+)(-.+)?$/.exec(version) ?? [];
  // An unparsable version counts as vulnerable.
  if (numbers === undefined) return true;
  return range.split(' || ').some((line) =>
    line.split(' ').every((comparator) => {
      const [, operator, bound] = /^(>=|<=|<|=)(\d+\.\d+\.\d+)$/.exec(comparator) ?? [];
      const order = compare(numbers, bound);
      if (operator === '>=') return order >= 0;
      if (operator === '=') return order === 0;
      return order < 0 || (order === 0 && (operator === '<=' || preRelease !== undefined));
    }),
  );
}

function compare(one, other) {
  const others = other.split('.').map(Number);
  const differences = one.split('.').map((number, index) => Number(number) - others[index]);
  return differences.find((difference) => difference !== 0) ?? 0;
}
