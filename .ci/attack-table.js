import { globSync, readFileSync, writeFileSync } from 'node:fs';

// Writes docs/generated/attacks.md from test/attacks/rows.json. Fails if an attack has no test, or a
// test has an unknown id. With --check, writes nothing and fails if the page is out of date.

const PAGE = 'docs/generated/attacks.md';
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

const known = JSON.parse(readFileSync('test/attacks/rows.json', 'utf8'));
const tested = new Set(
  globSync('test/**/*.test.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/['"`]([A-Z]\d{1,2})[ '"`]/g)].map(([, id]) => id),
  ),
);
const problems = [
  ...Object.keys(known)
    .filter((id) => !tested.has(id))
    .map((id) => `${id} has no test`),
  ...[...tested]
    .filter((id) => id.charAt(0) in GROUPS && !(id in known))
    .map((id) => `${id} is the id of a test, but missing from test/attacks/rows.json`),
];

const rows = Object.entries(GROUPS).map(([group, title]) => {
  const attacks = Object.entries(known).filter(([id]) => id.startsWith(group));
  return `| ${title} | ${attacks.map(([id, what]) => `**${id}** ${what}`).join('; ')} |`;
});
const page = `# Attack catalogue

The titles of the tests of an attack begin with its id. Those of one attack: \`npm test -- -t 'J13 '\`.
[security.md](../security.md) has the threat model. \`npm run attacks\` writes this page.

| group | attacks |
| --- | --- |
${rows.join('\n')}
`;
if (!process.argv.includes('--check')) writeFileSync(PAGE, page);
else if (readFileSync(PAGE, 'utf8') !== page)
  problems.push(`${PAGE} is out of date; run: npm run attacks`);
for (const problem of problems) console.error(problem);
console.log(`${Object.keys(known).length} attacks, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
