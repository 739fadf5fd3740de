import 'swagger-ui-dist/swagger-ui.css';
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import './explorer.css';
import { showBar } from './bar.ts';
import { clientHeaders } from './client.ts';
import { byId, element } from './dom.ts';
import { currentSession, freshToken, watchSession, withToken } from './session.ts';
import { home } from './settings.ts';
import { twinPlugin } from './twin.plugin.ts';

/** The scheme of the document that takes what the bar gets. */
const SCHEME = 'bearerAuth';

await showBar();
followColours();
const explorer = byId('explorer');
const openapi = await documentOf(`${home}/openapi.json`);
if (openapi) show(openapi);
else
  explorer.append(element('p', { className: 'notice', role: 'alert' }, 'The OpenAPI document could not be read. Try again in a moment.'));

function show(described: object): void {
  let isSignedIn = false;
  const ui = SwaggerUI({
    domNode: explorer,
    // Asked where the reader stands, which need not be where PUBLIC_URL says: a page of ours may ask no other origin.
    spec: { ...described, servers: [{ url: home }] },
    plugins: [twinPlugin],
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: async (request) => {
      const session = currentSession();
      const isSessions = session !== undefined && request.headers?.['Authorization'] === bearer(session.token);
      // Shown as a curl command, so the token is renewed before. The reader's own client has another name than this page.
      const headers = { ...request.headers, ...(isSessions && { Authorization: bearer(await freshToken()) }) };
      const send = (address: Parameters<typeof fetch>[0], init: RequestInit | undefined, own: object) =>
        fetch(address, { ...init, headers: { ...clientHeaders, ...headers, ...own } });
      const userFetch: typeof fetch = (address, init) =>
        isSessions
          ? withToken((token) => send(address, init, { Authorization: bearer(token) }), session.username)
          : send(address, init, {});
      return { ...request, headers, userFetch };
    },
    onComplete: () =>
      void watchSession((session) => {
        if (session) ui.preauthorizeApiKey(SCHEME, session.token);
        else if (isSignedIn) ui.authActions.logout([SCHEME]);
        isSignedIn = session !== undefined;
      }),
  });
}

function bearer(token = ''): string {
  return `Bearer ${token}`;
}

async function documentOf(address: string): Promise<object | undefined> {
  try {
    const answer = await fetch(address);
    return answer.ok ? ((await answer.json()) as object) : undefined;
  } catch {
    return undefined;
  }
}

// Swagger UI knows of dark colours, and leaves it to others to ask for them.
function followColours(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = (): void => void document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', follow);
  follow();
}
