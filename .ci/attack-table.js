import { existsSync, readFileSync, writeFileSync } from 'node:fs';

// Makes docs/attacks.md of the last runs of the tests on both databases, and keeps what they found in test/attacks/results.json. With
// --check it changes nothing, and fails where a row is not covered on both, where a file that was run by now found anything else than is
// kept, or where the page says anything else.

const PAGE = 'docs/attacks.md';
const RESULTS = 'test/attacks/results.json';
/** What programs found that do as one greedy client does: before there were limits, and last (docs/reliability.md). */
const GREEDY_BEFORE = 'test/attacks/greedy-before.json';
const FAULTS = 'test/faults/results.json';
const GROUPS = {
  J: 'Tokens',
  S: 'Sessions',
  K: 'API keys',
  U: 'The audit trail',
  E: 'Login: who has an account',
  B: 'Login: brute force',
  W: 'Passwords',
  D: 'Abuse of GraphQL',
  P: 'What one client costs',
  G: 'GraphQL over HTTP',
  R: 'Malformed input',
  Q: 'Pages',
  H: 'HTTP, headers and origins',
  O: 'Webhooks',
  X: 'Leaks',
};

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const known = read('test/attacks/rows.json');
const isCheck = process.argv.includes('--check');
const kept = existsSync(RESULTS) ? read(RESULTS) : {};
const problems = [];
const results = { embedded: resultsOn('embedded'), postgresql: resultsOn('postgresql') };
const runs = { embedded: rowsOf(results.embedded), postgresql: rowsOf(results.postgresql) };

for (const id of Object.keys(known)) {
  for (const [database, rows] of Object.entries(runs)) {
    if (Object.keys(rows[id] ?? {}).length === 0) problems.push(`${id} is covered by no test on the ${database} database`);
  }
}
for (const id of new Set(Object.values(runs).flatMap(Object.keys))) {
  if (id.charAt(0) in GROUPS && !(id in known)) problems.push(`${id} is carried by a test, and stands in no row of test/attacks/rows.json`);
}

const page = pageOf();
if (isCheck) {
  if (readFileSync(PAGE, 'utf8') !== page) problems.push(`${PAGE} is not what the tests say: npm run attacks`);
} else {
  writeFileSync(RESULTS, `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(PAGE, page);
}
for (const problem of problems) console.error(problem);
console.log(`${Object.keys(known).length} rows of the attack catalogue, ${problems.length} problems`);
process.exit(problems.length > 0 ? 1 : 0);

// How many tests of which row passed in which file: as kept, and as found by the runs since the build. Files that have gone count no more.
function resultsOn(database) {
  const path = `dist/attacks/${database}.json`;
  const found = Object.entries(existsSync(path) ? read(path) : {}).map(([file, rows]) => {
    for (const [id, { failed }] of Object.entries(rows)) {
      if (failed > 0) problems.push(`${id} has a test on the ${database} database that did not pass`);
    }
    const passed = Object.entries(rows).map(([id, counts]) => [id, counts.passed]);
    return [file, Object.fromEntries(passed.filter(([id]) => id in known || id.charAt(0) in GROUPS))];
  });
  for (const [file, rows] of isCheck ? found : []) {
    if (JSON.stringify(rows) !== JSON.stringify(kept[database]?.[file] ?? {})) {
      problems.push(`${file} on the ${database} database is not as ${RESULTS} says: npm run test:all && npm run attacks`);
    }
  }
  const all = { ...kept[database], ...Object.fromEntries(found) };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([file, rows]) => existsSync(file) && Object.keys(rows).length > 0)
      .toSorted(([a], [b]) => a.localeCompare(b)),
  );
}

function rowsOf(files) {
  const rows = {};
  for (const [file, own] of Object.entries(files)) for (const [id, passed] of Object.entries(own)) (rows[id] ??= {})[file] = passed;
  return rows;
}

function pageOf() {
  const parts = [
    '# The attack catalogue',
    'Every attack that we know of has a row, and every row has tests that carry its id and pass on both databases. This page is made from a run of them:',
    '```sh\nnpm run test:all && npm run attacks\n```',
    'The last two columns count the tests of the row on the embedded database and on PostgreSQL. [SECURITY.md](../SECURITY.md) maps the rows to OWASP ASVS.',
  ];
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = Object.entries(known).filter(([id]) => id.startsWith(group));
    const cells = rows.map(([id, what]) => [id, what, filesOf(id), count(runs.embedded, id), count(runs.postgresql, id)]);
    parts.push(`## ${title}`, table([['id', 'attack', 'tests', 'embedded', 'PostgreSQL'], ...cells]));
    if (group === 'P') parts.push(...greedyParts());
  }
  return `${parts.join('\n\n')}\n`;
}

function greedyParts() {
  const { commit, faults: before } = read(GREEDY_BEFORE);
  const after = read(FAULTS);
  const figures = ['longest health check', "other clients' reads", 'of them rejected', 'requests of the attack rejected', 'memory added'];
  const rows = Object.keys(before).flatMap((name) => {
    const [last] = Object.values(after[name] ?? {});
    const cells = (found) => figures.map((figure) => String(found?.[figure] ?? '').replace(/ \(goal.*/, ''));
    return [
      [name, 'before', ...cells(before[name])],
      ['', 'now', ...cells(last?.figures)],
    ];
  });
  return [
    `Programs do as one such client does, for 20 s beside 40 requests of others a second. "Before" is commit \`${commit}\`; "now" is the last run of \`npm run faults -- NAME\`, ` +
      'as [reliability.md](reliability.md) has it. Attack, server and database share two cores. Reads have their median and 99th percentile.',
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
