import { readFileSync } from 'node:fs';

/**
 * Exits with status 1 and one line on standard error if Node.js is older than `engines` of
 * package.json requires. Must be called before other imports, which may fail in an older version.
 */
export function requireNodeVersion(): void {
  const { engines } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  ) as { engines: { node: string } };
  const required = engines.node.replace('>=', '');
  if (process.versions.node.localeCompare(required, 'en', { numeric: true }) >= 0) return;
  console.error(
    `Shopfront requires Node.js ${required} or newer, but this is ${process.versions.node}; npm start and npm run use the version in node_modules`,
  );
  process.exit(1);
}
