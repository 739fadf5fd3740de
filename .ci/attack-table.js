import { existsSync, readFileSync, writeFileSync } from 'node:fs';

// Makes docs/attacks.md of the last runs of the tests on both databases. With --check it changes nothing, and fails where a row of
// the catalogue is not covered on both, or where the page says anything else.

const PAGE = 'docs/attacks.md';
const GROUPS = {
  J: 'Tokens',
  S: 'Sessions',
  K: 'API keys',
  U: 'The audit trail',
  E: 'Login: who has an account',
  B: 'Login: brute force',
  W: 'Passwords',
  D: 'Abuse of GraphQL',
  G: 'GraphQL over HTTP',
  R: 'Malformed input',
  Q: 'Pages',
  H: 'HTTP, headers and origins',
  O: 'Webhooks',
  X: 'Leaks',
};

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const known = read('test/attacks/rows.json');
const runs = { embedded: rowsOf('dist/attacks/embedded.json'), postgresql: rowsOf('dist/attacks/postgresql.json') };

const problems = [];
for (const id of Object.keys(known)) {
  for (const [database, rows] of Object.entries(runs)) {
    const files = Object.values(rows[id] ?? {});
    if (files.length === 0) problems.push(`${id} is covered by no test on the ${database} database`);
    if (files.some(({ failed }) => failed > 0)) problems.push(`${id} has a test on the ${database} database that did not pass`);
  }
}
for (const id of new Set(Object.values(runs).flatMap(Object.keys))) {
  if (id.charAt(0) in GROUPS && !(id in known)) problems.push(`${id} is carried by a test, and stands in no row of test/attacks/rows.json`);
}

const page = pageOf();
if (process.argv.includes('--check')) {
  if (readFileSync(PAGE, 'utf8') !== page) problems.push(`${PAGE} is not what the tests say: npm run attacks`);
} else {
  writeFileSync(PAGE, page);
}
for (const problem of problems) console.error(problem);
console.log(`${Object.keys(known).length} rows of the attack catalogue, ${problems.length} problems`);
process.exit(problems.length > 0 ? 1 : 0);

// What was noted of files that have gone since does not count.
function rowsOf(path) {
  const rows = {};
  for (const [file, own] of Object.entries(read(path)).filter(([name]) => existsSync(name))) {
    for (const [id, found] of Object.entries(own)) (rows[id] ??= {})[file] = found;
  }
  return rows;
}

function pageOf() {
  const parts = [
    '# The attack catalogue',
    'Every attack that we know of has a row, and every row has tests that carry its id and pass on both databases. This page is made from a run of them:',
    '```sh\nnpm test\nTEST_DATABASE_URL=postgresql://postgres@127.0.0.1/postgres npm test\nnpm run attacks\n```',
    'The last two columns count the tests of the row on the embedded database and on PostgreSQL. [SECURITY.md](../SECURITY.md) maps the rows to OWASP ASVS.',
  ];
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = Object.entries(known).filter(([id]) => id.startsWith(group));
    const cells = rows.map(([id, what]) => [id, what, filesOf(id), count(runs.embedded, id), count(runs.postgresql, id)]);
    parts.push(`## ${title}`, table([['id', 'attack', 'tests', 'embedded', 'PostgreSQL'], ...cells]));
  }
  return `${parts.join('\n\n')}\n`;
}

function filesOf(id) {
  const files = new Set(Object.values(runs).flatMap((rows) => Object.keys(rows[id] ?? {})));
  return [...files]
    .toSorted()
    .map((file) => `\`${file.replace(/^test\//, '')}\``)
    .join(', ');
}

function count(rows, id) {
  return String(Object.values(rows[id] ?? {}).reduce((sum, { passed }) => sum + passed, 0));
}

function table(rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const [head, ...body] = rows;
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n');
}
