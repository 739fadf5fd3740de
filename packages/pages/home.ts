import { comparisonOf } from './comparisons.ts';
import type { PagesOptions } from './index.ts';
import { markup, scriptJson, type Html } from './markup.ts';
import type { Comparison, DemoUser } from './settings.ts';

const STOREFRONT = {
  path: '/shop',
  name: 'Storefront',
  what: 'A shop in React that uses the GraphQL API. Its prices change while you look.',
};

const LINKS = [
  {
    path: '/docs',
    name: 'REST reference',
    what: 'Every endpoint with its input, responses and GraphQL equivalent, and a form to try it.',
  },
  {
    path: '/graphiql',
    name: 'GraphiQL',
    what: 'The schema to explore and operations to run, served by this server only.',
  },
  {
    path: '/graphql',
    name: 'GraphQL endpoint',
    what: 'Browsers get Apollo Sandbox, or GraphiQL if the Sandbox cannot load.',
  },
  {
    path: '/usage',
    name: 'REST usage',
    what: 'Who still calls which endpoint, and how often, for the removal of a version.',
  },
  {
    path: '/openapi.json',
    name: 'OpenAPI document',
    what: 'The REST API in machine-readable form, for generators of clients and tests.',
  },
];

const GROUPS: readonly [string, readonly Comparison['kind'][]][] = [
  ['Read', ['read']],
  ['Write', ['create']],
  ['Sign in and out', ['login', 'logout']],
];

/** The endpoint that is selected first: its response is short, and all may call it. */
const FIRST = '/api/v2/shop/products';

/**
 * Returns the body of the home page: the comparison of a REST request with its GraphQL equivalent,
 * links, demo users, and the version.
 */
export function homeBody(options: PagesOptions): Html {
  const { basePath, demoUsers, endpoints, hasStorefront, version } = options;
  const comparisons = endpoints.map(comparisonOf);
  return markup`<main>
<h1>One shop, two APIs. Run a REST call and its GraphQL equivalent side by side.</h1>
<noscript><p class="notice">The comparison needs JavaScript. The APIs do not.</p></noscript>
<script type="application/json" id="comparisons">${scriptJson(comparisons)}</script>
<form id="controls">
<label for="endpoint">Endpoint</label>
<select id="endpoint">${endpointOptions(comparisons)}</select>
<button id="run">Run both</button>
<p id="note"></p>
</form>
<div class="sides">
${side('rest', 'REST')}
${side('graphql', 'GraphQL')}
</div>
<section id="result" aria-label="Result">
<p id="verdict" role="status">Press <b>Run both</b> to compare the responses.</p>
<div id="details"></div>
</section>
<div class="sides" id="responses"></div>
<h2>Explore</h2>
<ul class="links">
${[...(hasStorefront ? [STOREFRONT] : []), ...LINKS].map(({ path, name, what }) => markup`<li><a href="${basePath}${path}">${name}</a><p>${what}</p></li>\n`)}</ul>
${demoUsers.length > 0 ? demoUsersSection(demoUsers) : []}
</main>
<footer>
<p>Shopfront ${version}</p>
<p><a href="${basePath}/livez">Liveness</a> <a href="${basePath}/readyz">Readiness</a></p>
</footer>`;
}

function endpointOptions(comparisons: readonly Comparison[]): Html[] {
  return GROUPS.map(([label, kinds]) => {
    const options = comparisons.flatMap(({ method, path, summary, kind }, index) => {
      if (!kinds.includes(kind)) return [];
      const selected = path === FIRST ? markup` selected` : '';
      return [
        markup`<option value="${String(index)}"${selected}>${summary} · ${method} ${path}</option>\n`,
      ];
    });
    return markup`<optgroup label="${label}">\n${options}</optgroup>\n`;
  });
}

function side(id: string, name: string): Html {
  return markup`<section class="side" aria-labelledby="${id}-name">
<header><h2 id="${id}-name">${name}</h2><button type="button" id="${id}-copy">Copy as curl</button></header>
<div class="request" id="${id}-request"></div>
</section>`;
}

function demoUsersSection(demoUsers: readonly DemoUser[]): Html {
  const rows = demoUsers.map(({ username, password, scopes, disabled }) => {
    const may = disabled ? 'disabled, cannot sign in' : scopes.join(', ') || 'none';
    return markup`<tr><th scope="row">${username}</th><td><code>${password}</code></td><td>${may}</td></tr>\n`;
  });
  return markup`<h2>Demo users</h2>
<p>Sign in <a href="#session">at the top</a> of any page to run requests as one of them.</p>
<table class="users">
<thead><tr><th scope="col">Username</th><th scope="col">Password</th><th scope="col">Scopes</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}
