import 'swagger-ui-dist/swagger-ui.css';
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import './explorer.css';
import { showBar } from './bar.ts';
import { clientHeaders } from './client.ts';
import { byId, element } from './dom.ts';
import { currentSession, freshToken, watchSession, withToken } from './session.ts';
import { home } from './settings.ts';
import { equivalentPlugin } from './equivalent.plugin.ts';

/** The security scheme of the document for the token of the bar. */
const SCHEME = 'bearerAuth';

await showBar();
applyColourScheme();
const explorer = byId('explorer');
const openapi = await documentOf(`${home}/openapi.json`);
if (openapi) show(openapi);
else
  explorer.append(
    element(
      'p',
      { className: 'notice', role: 'alert' },
      'The OpenAPI document could not be read. Try again in a moment.',
    ),
  );

function show(openapiDocument: object): void {
  let isSignedIn = false;
  const ui = SwaggerUI({
    domNode: explorer,
    // The address of this page, not PUBLIC_URL: the policy allows no requests to other origins.
    spec: { ...openapiDocument, servers: [{ url: home }] },
    plugins: [equivalentPlugin],
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: async (request) => {
      const session = currentSession();
      const usesSession =
        session !== undefined && request.headers?.['Authorization'] === bearer(session.token);
      // The page shows a curl command with these headers, so the token is renewed first. They lack
      // the client name of this page, because the reader's client has its own.
      const headers = {
        ...request.headers,
        ...(usesSession && { Authorization: bearer(await freshToken()) }),
      };
      const send = (
        address: Parameters<typeof fetch>[0],
        init: RequestInit | undefined,
        extra: object,
      ) => fetch(address, { ...init, headers: { ...clientHeaders, ...headers, ...extra } });
      const userFetch: typeof fetch = (address, init) =>
        usesSession
          ? withToken(
              (token) => send(address, init, { Authorization: bearer(token) }),
              session.username,
            )
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
    const response = await fetch(address);
    return response.ok ? ((await response.json()) as object) : undefined;
  } catch {
    return undefined;
  }
}

// Swagger UI has dark colours, but does not read the preference of the browser.
function applyColourScheme(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const apply = (): void =>
    void document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', apply);
  apply();
}
