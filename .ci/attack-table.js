import { existsSync, readFileSync, writeFileSync } from 'node:fs';

// Writes docs/generated/attacks.md and test/attacks/results.json from the last test runs on both
// databases. With --check, writes nothing and fails if an attack has no test on one of the
// databases, if a test file that has run since the build differs from the stored results, or if the
// page differs from them.

const PAGE = 'docs/generated/attacks.md';
const RESULTS = 'test/attacks/results.json';
/** Results of the greedy-client programs: before the limits existed, and of the last run. */
const GREEDY_BEFORE = 'test/attacks/greedy-before.json';
const FAULTS = 'test/faults/results.json';
const GROUPS = {
  J: 'Tokens',
  S: 'Sessions',
  K: 'API keys',
  U: 'Audit trail',
  E: 'Login: account enumeration',
  B: 'Login: brute force',
  W: 'Passwords',
  D: 'GraphQL abuse',
  P: 'Resource exhaustion',
  G: 'GraphQL over HTTP',
  R: 'Malformed input',
  Q: 'Pagination',
  H: 'HTTP, headers and origins',
  O: 'Webhooks',
  X: 'Leaks',
};

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const known = read('test/attacks/rows.json');
const isCheck = process.argv.includes('--check');
const stored = existsSync(RESULTS) ? read(RESULTS) : {};
const problems = [];
const results = { embedded: resultsOn('embedded'), postgresql: resultsOn('postgresql') };
const runs = { embedded: rowsOf(results.embedded), postgresql: rowsOf(results.postgresql) };

for (const id of Object.keys(known)) {
  for (const [database, rows] of Object.entries(runs)) {
    if (Object.keys(rows[id] ?? {}).length === 0)
      problems.push(`${id} has no test on the ${database} database`);
  }
}
for (const id of new Set(Object.values(runs).flatMap(Object.keys))) {
  if (id.charAt(0) in GROUPS && !(id in known))
    problems.push(`${id} is the id of a test, but missing from test/attacks/rows.json`);
}

const page = pageOf();
if (isCheck) {
  if (readFileSync(PAGE, 'utf8') !== page)
    problems.push(`${PAGE} differs from the test results; run: npm run attacks`);
} else {
  writeFileSync(RESULTS, `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(PAGE, page);
}
for (const problem of problems) console.error(problem);
console.log(`${Object.keys(known).length} attacks, ${problems.length} problems`);
process.exit(problems.length > 0 ? 1 : 0);

// Returns the number of passed tests by file and attack: the stored results, updated by the runs
// since the build, without deleted files.
function resultsOn(database) {
  const path = `dist/attacks/${database}.json`;
  const found = Object.entries(existsSync(path) ? read(path) : {}).map(([file, rows]) => {
    for (const [id, { failed }] of Object.entries(rows)) {
      if (failed > 0) problems.push(`${id} has a failed test on the ${database} database`);
    }
    const passed = Object.entries(rows).map(([id, counts]) => [id, counts.passed]);
    return [
      file,
      Object.fromEntries(passed.filter(([id]) => id in known || id.charAt(0) in GROUPS)),
    ];
  });
  for (const [file, rows] of isCheck ? found : []) {
    if (JSON.stringify(rows) !== JSON.stringify(stored[database]?.[file] ?? {})) {
      problems.push(
        `${file} on the ${database} database differs from ${RESULTS}; run: npm run test:all && npm run attacks`,
      );
    }
  }
  const all = { ...stored[database], ...Object.fromEntries(found) };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([file, rows]) => existsSync(file) && Object.keys(rows).length > 0)
      .toSorted(([a], [b]) => a.localeCompare(b)),
  );
}

function rowsOf(files) {
  const rows = {};
  for (const [file, own] of Object.entries(files))
    for (const [id, passed] of Object.entries(own)) (rows[id] ??= {})[file] = passed;
  return rows;
}

function pageOf() {
  const parts = [
    '# Attack catalogue',
    'Each attack has tests whose titles begin with its id and that pass on both databases. This page is written by:',
    '```sh\nnpm run test:all && npm run attacks\n```',
    "The last two columns are the numbers of passed tests on the embedded database and on PostgreSQL. [security.md](../security.md) has the threat model. The tests of one attack: `npm test -- -t 'J13 '`.",
  ];
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = Object.entries(known).filter(([id]) => id.startsWith(group));
    const cells = rows.map(([id, what]) => [
      id,
      what,
      filesOf(id),
      count(runs.embedded, id),
      count(runs.postgresql, id),
    ]);
    parts.push(
      `## ${title}`,
      table([['id', 'attack', 'tests', 'embedded', 'PostgreSQL'], ...cells]),
    );
    if (group === 'P') parts.push(...greedyParts());
  }
  return `${parts.join('\n\n')}\n`;
}

function greedyParts() {
  const { commit, faults: before } = read(GREEDY_BEFORE);
  const after = read(FAULTS);
  const figures = [
    'longest health check',
    "other clients' reads",
    'of them rejected',
    'requests of the attack rejected',
    'memory added',
  ];
  const rows = Object.keys(before).flatMap((name) => {
    const [last] = Object.values(after[name] ?? {});
    const cells = (found) =>
      figures.map((figure) => String(found?.[figure] ?? '').replace(/ \(goal.*/, ''));
    return [
      [name, 'before', ...cells(before[name])],
      ['', 'now', ...cells(last?.figures)],
    ];
  });
  return [
    `Each program runs one greedy client for 20 s, beside 40 requests per second of other clients. "Before" is commit \`${commit}\`; "now" is the last run of \`npm run faults -- NAME\`. ` +
      'Client, server and database share two cores. Reads: median and 99th percentile.',
    table([['program', '', ...figures], ...rows]),
  ];
}

function filesOf(id) {
  const files = new Set(Object.values(runs).flatMap((rows) => Object.keys(rows[id] ?? {})));
  return [...files]
    .toSorted()
    .map((file) => `\`${file.replace(/^test\//, '')}\``)
    .join(', ');
}

function count(rows, id) {
  return String(Object.values(rows[id] ?? {}).reduce((sum, passed) => sum + passed, 0));
}

function table(rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const [head, ...body] = rows;
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n');
}
