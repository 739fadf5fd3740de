import { markup, type Html } from './markup.ts';
import type { DemoUser } from './settings.ts';

/** Returns the body of the page with the usage of the REST API. */
export function usageBody(demoUsers: readonly DemoUser[]): Html {
  const names = demoUsers
    .filter(mayReadUsage)
    .map(({ username }) => markup`<b>${username}</b> or `);
  return markup`<main>
<h1>Who still calls the REST API</h1>
<p class="lead">Calls by endpoint, client and user, the most calls first. The contract kit and these pages are not counted.</p>
<noscript><p class="notice">This page needs JavaScript. The command <code>rest-usage report</code> prints the same.</p></noscript>
<p id="message" role="status"></p>
<p id="sign-in" hidden><a href="#session">Sign in</a> as ${names}a user with the scope <code>users:read</code>.</p>
<div id="usage" hidden>
<label class="filter">Endpoint contains <input type="search" id="endpoint" placeholder="/api/v1/"></label>
<div id="lines"></div>
</div>
</main>`;
}

function mayReadUsage({ scopes, disabled }: DemoUser): boolean {
  return scopes.includes('users:read') && !disabled;
}
