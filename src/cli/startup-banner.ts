import type { Config } from '../core/config.ts';
import { VERSION } from '../core/version.ts';
import { demoUsers } from '../features/demo-data.ts';

const NAME = `Shopfront ${VERSION}`;

/** Returns the text that a start prints, with examples on the embedded default. */
export function startupBanner(config: Config, port: number): string {
  const base = `http://${config.urlHost}:${port}${config.basePath}`;
  if (config.databaseUrl !== undefined) return `${NAME} listens on ${base}`;
  const users = demoUsers.map(({ username, password, scopes, disabled }) => {
    const may = disabled ? 'disabled' : scopes.join(', ') || 'no scopes';
    return `    ${username.padEnd(6)} / ${password.padEnd(13)} ${may}`;
  });
  return `
${NAME} listens on ${base}, with an embedded database in ${config.dataDir}.
${config.graphqlExplorer ? inBrowser(config, base) : ''}
  GraphQL:
    ${base}/graphql

  REST:
    curl '${base}/api/v2/shop/products?page=1'
    curl ${base}/token -d username=alice -d password=alice-demo-1
    curl ${base}/session/login -H 'Content-Type: application/json' -d '{"username":"bob","password":"bob-demo-1"}'

  Demo users of a new database:
${users.join('\n')}
`;
}

function inBrowser(config: Config, base: string): string {
  const shop = config.servesStorefront ? `\n    ${base}/shop` : '';
  return `
  In a browser: home page, GraphiQL, REST reference${shop && ', storefront'}
    ${base}/
    ${base}/graphiql
    ${base}/docs${shop}
`;
}
