import type { z } from 'zod';
import { environment } from '../core/config.ts';

// Prints docs/configuration.md. CI compares the committed file with this output:
// npm run -s configuration > docs/configuration.md
const rows = Object.entries(environment.shape).map(([name, type]) => {
  const [description, stated] = (type.description ?? '').split(' Default: ');
  return `| \`${name}\` | ${stated?.replace(/\.$/, '') ?? defaultOf(type)} | ${description} |`;
});
process.stdout.write(`# Configuration

Settings are environment variables, or lines of the file \`.env\`, which \`npm install\` creates from
\`.env.example\`. They are checked at the start: a wrong one is named, and the process exits with 78.

| Setting | Default | Description |
| --- | --- | --- |
${rows.join('\n')}
`);

// In the form in which it is set. Empty where there is none.
function defaultOf(type: z.ZodType): string {
  const { data } = type.safeParse(undefined);
  if (data === undefined || data === '' || (Array.isArray(data) && data.length === 0)) return '';
  if (data === true && type.safeParse('on').success) return '`on`';
  if (data === false && type.safeParse('off').success) return '`off`';
  return `\`${Array.isArray(data) ? data.join() : (data as string | number | boolean)}\``;
}
