import { demoUsers } from '../features/demo-data.ts';
import type { Config } from '../core/config.ts';
import { markup, type Html } from './markup.ts';

/** Returns the body of the page with the usage of the REST API. */
export function usageBody(config: Config): Html {
  const readers = config.databaseUrl === undefined ? demoUsers.filter(mayReadUsage) : [];
  const names = readers.map(({ username }) => markup`<b>${username}</b> or `);
  return markup`<main>
<h1>Who still calls the REST API</h1>
<p class="lead">Calls of the last 90 days by endpoint and client. The contract kit and these pages are not counted.</p>
<noscript><p class="notice">This page needs JavaScript. The command <code>rest-usage trends</code> prints the same.</p></noscript>
<p id="message" role="status"></p>
<p id="sign-in" hidden><a href="#session">Sign in</a> as ${names}a user with the scope <code>users:read</code>.</p>
<div id="usage" hidden>
<section aria-labelledby="left-name">
<h2 id="left-name">Clients left on deprecated paths</h2>
<div id="left"></div>
</section>
<section aria-labelledby="calls-name">
<h2 id="calls-name">Calls</h2>
<label class="filter"><input type="checkbox" id="deprecated"> Deprecated paths only</label>
<p class="legend">The graphs have one bar per day. Trend: calls in <span class="earlier">the 14 days before</span> → <span class="recent">the last 14 days</span>.</p>
<div id="lines"></div>
<button type="button" id="more" hidden>Show more</button>
</section>
</div>
</main>`;
}

function mayReadUsage({ scopes, disabled }: (typeof demoUsers)[number]): boolean {
  return scopes.includes('users:read') && !disabled;
}
