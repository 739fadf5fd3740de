import { demoUsers } from '../features/demo-data.ts';
import type { Config } from '../core/config.ts';
import { markup, type Html } from './markup.ts';

const LINKS = [
  {
    path: '/graphql',
    name: 'GraphQL',
    what: 'The GraphQL API. Browsers get Apollo Sandbox, or GraphiQL if the Sandbox cannot load.',
  },
  {
    path: '/graphiql',
    name: 'GraphiQL',
    what: 'Schema explorer with example queries, served by this server only.',
  },
  {
    path: '/docs',
    name: 'REST reference',
    what: 'All REST endpoints with their input, responses and GraphQL equivalents, and a form to try them.',
  },
  {
    path: '/openapi.json',
    name: 'OpenAPI',
    what: 'The same in machine-readable form, for generators of clients, tests or collections.',
  },
  { path: '/livez', name: 'Liveness', what: 'Returns 200 while the process runs.' },
  { path: '/readyz', name: 'Readiness', what: 'Returns 200 while the process can serve requests.' },
];

/** Returns the body of the home page: introduction, links, users, example commands. */
export function homeBody(config: Config): Html {
  return markup`<main>
<h1>Shopfront</h1>
<p class="lead">One shop backend with two APIs: GraphQL for rich frontends, and REST for legacy clients.
Both APIs have the same functions, and a login at either is valid for both.</p>
${linksTable(config)}
${config.databaseUrl === undefined ? demoUsersSection() : usersSection()}
${commandsSection(config)}
</main>`;
}

function linksTable({ basePath }: Config): Html {
  const rows = LINKS.map(({ path, name, what: purpose }) => {
    const address = basePath + path;
    return markup`<tr><th scope="row"><a href="${address}">${name}</a></th><td><code>${address}</code></td><td>${purpose}</td></tr>\n`;
  });
  return markup`<h2>Contents</h2>
${table('Contents', ['What', 'Path', 'For'], rows)}`;
}

function demoUsersSection(): Html {
  const rows = demoUsers.map(({ username, password, scopes, disabled }) => {
    const may = disabled ? 'disabled, cannot sign in' : scopes.join(', ') || 'none';
    return markup`<tr><th scope="row">${username}</th><td><code>${password}</code></td><td>${may}</td></tr>\n`;
  });
  return markup`<h2>Users</h2>
<p>The users of the demo data. <a href="#session">Sign in at the top</a> of any page to run requests as that user.</p>
${table('Users', ['Username', 'Password', 'Scopes'], rows)}`;
}

function usersSection(): Html {
  return markup`<h2>Users</h2>
<p>Users are created by the operator. <a href="#session">Sign in at the top</a> of any page to run requests as your user.</p>`;
}

function commandsSection({ publicUrl, basePath, databaseUrl }: Config): Html {
  // An apostrophe in the URL must not end the shell's quotes.
  const home = publicUrl.replaceAll("'", '%27') + basePath;
  const [username, password] = databaseUrl === undefined ? ['alice', 'alice-demo-1'] : ['…', '…'];
  const commands = [
    `curl '${home}/api/v2/shop/products?limit=2'`,
    `curl '${home}/graphql' -H 'Content-Type: application/json' -d '{"query":"{ products(first: 2) { totalCount nodes { name price } } }"}'`,
    `curl '${home}/token' -d username=${username} -d password=${password}`,
  ];
  return markup`<h2>Try it in a shell</h2>
${commands.map((command) => markup`<div class="command"><code data-home="${home}">${command}</code></div>\n`)}`;
}

// On narrow screens, the table scrolls separately, also by keyboard.
function table(label: string, columns: readonly string[], rows: readonly Html[]): Html {
  return markup`<div class="wide" role="region" aria-label="${label}" tabindex="0">
<table>
<thead><tr>${columns.map((column) => markup`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
${rows}</tbody>
</table>
</div>`;
}
