import type { Config } from '../core/config.ts';
import { VERSION } from '../core/version.ts';
import { demoUsers } from '../features/demo-data.ts';

/** Returns the text that a start prints, with the demo users on the embedded default. */
export function startupBanner(config: Config, port: number): string {
  const url = `http://${config.urlHost}:${port}${config.basePath}`;
  const listens = `Shopfront ${VERSION} listens on ${url}`;
  if (config.databaseUrl !== undefined) return listens;
  const users = demoUsers.map(({ username, password, scopes, disabled }) => {
    const may = disabled ? 'disabled' : scopes.join(', ') || 'no scopes';
    return `  ${username.padEnd(6)} / ${password.padEnd(13)} ${may}`;
  });
  return `${listens}, with an embedded database in ${config.dataDir}. Demo users:\n${users.join('\n')}`;
}
