import type { Config } from '../../kit/config.ts';
import { demoUsers } from '../../database/demo.ts';
import { html, type Html } from './html.ts';

const PLACES = [
  ['/graphql', 'GraphQL', 'The one address of the GraphQL door. In a browser: Apollo Sandbox, or GraphiQL where its site cannot be reached.'],
  ['/graphiql', 'GraphiQL', 'An explorer of the schema, with examples. It comes from this server and asks no other.'],
  ['/docs', 'REST reference', 'Every REST path, with its input, its answers and its twin in GraphQL. It can be tried where it stands.'],
  ['/openapi.json', 'OpenAPI document', 'The same for programs: to make a client, or to import into a tool.'],
  ['/livez', 'Life', 'Whether the process runs.'],
  ['/readyz', 'Readiness', 'Whether it can serve.'],
] as const;

/** What stands on the home page: what this is, where things are, who can sign in, what to try. */
export function homeBody(config: Config): Html {
  const { basePath } = config;
  const places = PLACES.map(
    ([path, name, what]) => html`<tr><th scope="row"><a href="${basePath}${path}">${name}</a></th><td><code>${basePath}${path}</code></td><td>${what}</td></tr>
`,
  );
  return html`<main>
<h1>Shopfront</h1>
<p class="lead">One shop domain behind two doors: GraphQL for rich frontends, and the REST paths that legacy clients have always called.
Whatever one door can do the other can, and a login at either is good for both.</p>
<h2>Where things are</h2>
<div class="wide" role="region" aria-label="Where things are" tabindex="0"><table>
<thead><tr><th scope="col">What</th><th scope="col">Path</th><th scope="col">For</th></tr></thead>
<tbody>
${places}</tbody>
</table></div>
${config.databaseUrl === undefined ? demoBody() : html``}
<h2>Try it</h2>
${commandsOf(config)}
</main>`;
}

function demoBody(): Html {
  const users = demoUsers.map(
    ({ username, password, scopes, disabled }) =>
      html`<tr><th scope="row">${username}</th><td><code>${password}</code></td><td>${disabled ? 'disabled: cannot sign in' : scopes.join(', ') || 'none'}</td></tr>
`,
  );
  return html`<h2>Who can sign in</h2>
<p>The demo data has these users. Sign in at the top of any of these pages, and the explorers send the credential along.</p>
<div class="wide" role="region" aria-label="Demo users" tabindex="0"><table>
<thead><tr><th scope="col">Username</th><th scope="col">Password</th><th scope="col">Scopes</th></tr></thead>
<tbody>
${users}</tbody>
</table></div>`;
}

function commandsOf({ publicUrl, basePath, databaseUrl }: Config): Html[] {
  // In the shell's quotes an address must not end them.
  const home = publicUrl.replaceAll("'", '%27') + basePath;
  const [username, password] = databaseUrl === undefined ? ['alice', 'alice-demo-1'] : ['YOU', 'YOUR-PASSWORD'];
  const commands = [
    `curl '${home}/api/v2/shop/products?limit=2'`,
    `curl '${home}/graphql' -H 'Content-Type: application/json' -d '{"query":"{ products(first: 2) { totalCount nodes { name price } } }"}'`,
    `curl '${home}/token' -d username=${username} -d password=${password}`,
  ];
  return commands.map((command) => html`<div class="command"><code data-home="${home}">${command}</code></div>
`);
}
