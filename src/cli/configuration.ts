import { settings } from '../core/config.ts';

// Prints docs/configuration.md. A test compares the committed file with this output:
// npm run -s configuration > docs/configuration.md
const rows = settings.map(
  ({ name, default: value, description }) => `| \`${name}\` | ${value} | ${description} |`,
);
process.stdout.write(`# Configuration

Settings are environment variables, or lines of the file \`.env\`, which \`npm install\` creates from
\`.env.example\`. They are checked at the start: a wrong one is named, and the process exits with 78.

| Setting | Default | Description |
| --- | --- | --- |
${rows.join('\n')}
`);
