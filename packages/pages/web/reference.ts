import { createApiReference } from '@scalar/api-reference';
import { parse, print } from 'graphql';
import { clientHeaders } from './client.ts';
import { graphiqlLink } from './examples.ts';
import { withToken } from './session.ts';
import { home } from './settings.ts';

/** Placeholder of the access token in examples. Requests with it use the session of the bar. */
const PLACEHOLDER = '$TOKEN';

/** The used part of an OpenAPI document. */
interface OpenApi {
  paths?: Record<string, Record<string, Operation>>;
}

interface Operation {
  description?: string;
  /** The GraphQL equivalent. */
  'x-graphql'?: { operation: string; variables?: Record<string, unknown> };
}

/** Shows the OpenAPI document in the element, as a reference that can send requests. */
export function showReference(target: HTMLElement, openapi: OpenApi): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const configuration = () => ({
    content: { ...openapi, paths: withEquivalents(openapi) },
    // The address of this page, not PUBLIC_URL: the policy allows no requests to other origins.
    servers: [{ url: home }],
    authentication: {
      preferredSecurityScheme: 'bearerAuth',
      securitySchemes: { bearerAuth: { token: PLACEHOLDER } },
    },
    customFetch,
    forceDarkModeState: dark.matches ? ('dark' as const) : ('light' as const),
    hideDarkModeToggle: true,
    theme: 'none' as const,
    withDefaultFonts: false,
    // Nothing of other sites.
    telemetry: false,
    hideClientButton: true,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: 'never' as const,
    documentDownloadType: 'json' as const,
    defaultOpenAllTags: true,
  });
  const { updateConfiguration } = createApiReference(target, configuration());
  // Scalar opens links in new tabs, which do not have the session of this tab.
  target.addEventListener('click', ({ target: clicked }) => {
    const link = clicked instanceof Element && clicked.closest('a');
    if (link && link.href.startsWith(`${home}/graphiql?`)) link.target = '_self';
  });
  dark.addEventListener('change', () => updateConfiguration(configuration()));
}

// Credentials that the reader entered take precedence over those of the bar.
const customFetch: typeof fetch = (input, init) => {
  const request = new Request(input, init);
  const send = (token?: string): Promise<Response> => {
    const copy = request.clone();
    for (const [name, value] of Object.entries(clientHeaders)) copy.headers.set(name, value);
    if (request.headers.get('Authorization') === `Bearer ${PLACEHOLDER}`) {
      if (token === undefined) copy.headers.delete('Authorization');
      else copy.headers.set('Authorization', `Bearer ${token}`);
    }
    return fetch(copy);
  };
  return request.headers.get('Authorization') === `Bearer ${PLACEHOLDER}`
    ? withToken(send)
    : send();
};

// Adds the GraphQL equivalent of each operation to its description.
function withEquivalents({ paths = {} }: OpenApi): OpenApi['paths'] {
  return mapValues(paths, (methods) =>
    mapValues(methods, ({ 'x-graphql': equivalent, ...operation }) => {
      if (!equivalent) return operation;
      const query = print(parse(equivalent.operation));
      const variables =
        Object.keys(equivalent.variables ?? {}).length > 0
          ? JSON.stringify(equivalent.variables, null, 2)
          : '';
      const link = new URL(graphiqlLink({ query, variables }), location.href).href;
      return {
        ...operation,
        description: [
          operation.description ?? '',
          `**GraphQL equivalent** – [Open in GraphiQL](${link})`,
          `\`\`\`graphql\n${query}\n\`\`\``,
          ...(variables === '' ? [] : [`\`\`\`json\n${variables}\n\`\`\``]),
        ].join('\n\n'),
      };
    }),
  );
}

function mapValues<From, To>(
  record: Record<string, From>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
