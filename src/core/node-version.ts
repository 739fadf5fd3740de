import { readFileSync } from 'node:fs';

/**
 * Ends the process with 1 and one line on standard error where its Node.js is older than `engines` of package.json says. To be
 * called before anything else is imported, as that may fail in an older one.
 */
export function refuseOldNode(): void {
  const { engines } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { engines: { node: string } };
  const needed = engines.node.replace('>=', '');
  if (process.versions.node.localeCompare(needed, 'en', { numeric: true }) >= 0) return;
  console.error(
    `Shopfront needs Node.js ${needed} or newer, and this is ${process.versions.node}; npm start and npm run use the one in node_modules`,
  );
  process.exit(1);
}
