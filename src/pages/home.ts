import { demoUsers } from '../features/demo-data.ts';
import type { Config } from '../core/config.ts';
import { markup, type Html } from './markup.ts';

const PLACES = [
  {
    path: '/graphql',
    name: 'GraphQL',
    what: 'The one address of the GraphQL door. A browser gets Apollo Sandbox, or GraphiQL where that cannot come.',
  },
  { path: '/graphiql', name: 'GraphiQL', what: 'Explores the schema, with examples to run. It comes from this server and asks no other.' },
  {
    path: '/docs',
    name: 'REST reference',
    what: 'Every REST path with its input, its answers and its twin in GraphQL, to be tried where it stands.',
  },
  { path: '/openapi.json', name: 'OpenAPI', what: 'The same for programs that make clients, tests or collections of it.' },
  { path: '/livez', name: 'Liveness', what: 'Whether the process runs.' },
  { path: '/readyz', name: 'Readiness', what: 'Whether it can serve.' },
];

/** What stands on the home page: what this is, where things are, who can sign in, what to try. */
export function homeBody(config: Config): Html {
  return markup`<main>
<h1>Shopfront</h1>
<p class="lead">One shop domain behind two doors: GraphQL for rich frontends, and the REST paths that legacy clients have always called.
What one door can do the other can, and a login at either is good for both.</p>
${placesOf(config)}
${config.databaseUrl === undefined ? users() : accounts()}
${commandsOf(config)}
</main>`;
}

function placesOf({ basePath }: Config): Html {
  const rows = PLACES.map(({ path, name, what }) => {
    const address = basePath + path;
    return markup`<tr><th scope="row"><a href="${address}">${name}</a></th><td><code>${address}</code></td><td>${what}</td></tr>\n`;
  });
  return markup`<h2>Where things are</h2>
${table('Where things are', ['What', 'Path', 'For'], rows)}`;
}

function users(): Html {
  const rows = demoUsers.map(({ username, password, scopes, disabled }) => {
    const may = disabled ? 'disabled: a login is refused' : scopes.join(', ') || 'none';
    return markup`<tr><th scope="row">${username}</th><td><code>${password}</code></td><td>${may}</td></tr>\n`;
  });
  return markup`<h2>Who can sign in</h2>
<p>The demo data comes with these. <a href="#session">Sign in at the top</a> of any page, and what you run there runs as that user.</p>
${table('Who can sign in', ['Username', 'Password', 'Scopes'], rows)}`;
}

function accounts(): Html {
  return markup`<h2>Who can sign in</h2>
<p>Users whom the operator has made. <a href="#session">Sign in at the top</a> of any page, and what you run there runs as you.</p>`;
}

function commandsOf({ publicUrl, basePath, databaseUrl }: Config): Html {
  // An address must not end the quotes that it stands in.
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

// Wider than a phone, it scrolls by itself, by keyboard too.
function table(label: string, columns: readonly string[], rows: readonly Html[]): Html {
  return markup`<div class="wide" role="region" aria-label="${label}" tabindex="0">
<table>
<thead><tr>${columns.map((column) => markup`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
${rows}</tbody>
</table>
</div>`;
}
