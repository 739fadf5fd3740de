import { parse, print } from 'graphql';
import type { ComponentType, ReactNode } from 'react';
import SwaggerUI, {
  type SwaggerPlugin,
  type SwaggerRequest,
} from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { clientHeaders } from './client.ts';
import { graphiqlLink } from './examples.ts';
import { withToken } from './session.ts';
import { home } from './settings.ts';

/** Placeholder of the access token in examples. Requests with it use the session of the bar. */
const PLACEHOLDER = '$TOKEN';

/** The used part of an OpenAPI document. */
interface OpenApi {
  info?: { description?: string };
  paths?: Record<string, Record<string, Operation>>;
}

interface Operation {
  description?: string;
  /** The GraphQL equivalent. */
  'x-graphql'?: { operation: string; variables?: Record<string, unknown> };
}

/** Shows the OpenAPI document in the element, as a reference that can send requests. */
export function showReference(target: HTMLElement, openapi: OpenApi): void {
  const ui = SwaggerUI({
    domNode: target,
    spec: {
      ...openapi,
      info: { ...openapi.info, description: withDownload(openapi) },
      paths: withEquivalents(openapi),
      // The address of this page, not PUBLIC_URL: the policy allows no requests to other origins.
      servers: [{ url: home }],
    },
    layout: 'Reference',
    plugins: [layout],
    deepLinking: true,
    tryItOutEnabled: true,
    requestInterceptor: (request) => Object.assign(request, { userFetch: send }),
    // The curl command shows the placeholder, not the token of the session.
    showMutatedRequest: false,
    syntaxHighlight: { theme: 'obsidian' },
    onComplete: () => ui.preauthorizeApiKey('bearerAuth', PLACEHOLDER),
  });
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const showColours = (): void =>
    void document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', showColours);
  showColours();
  // Swagger UI opens links in new tabs, which do not have the session of this tab.
  target.addEventListener('click', ({ target: clicked }) => {
    const link = clicked instanceof Element && clicked.closest('a');
    if (link && link.href.startsWith(`${home}/graphiql?`)) link.target = '_self';
  });
}

/** Parts of Swagger UI, by their names. */
interface LayoutProperties {
  getComponent: (name: string, isContainer?: boolean) => ComponentType;
}

// The layout of Swagger UI has a main landmark of its own, and no heading above the operations. Its
// request bodies and close button have no label, and it shows paths as links inside buttons.
const layout: SwaggerPlugin = ({ React: { createElement: create } }) => ({
  components: {
    Reference({ getComponent }: LayoutProperties) {
      const parts = (...names: string[]) =>
        names.map((name) => create(getComponent(name, true), { key: name }));
      return create(
        'div',
        { className: 'swagger-ui' },
        create(getComponent('SvgAssets')),
        create(
          'div',
          { className: 'wrapper' },
          parts('InfoContainer', 'AuthorizeBtnContainer'),
          create('h2', {}, 'Operations'),
          parts('operations', 'Models'),
        ),
      );
    },
    TextArea: (properties: object) =>
      create('textarea', { 'aria-label': 'Request body', ...properties }),
    CloseIcon: () => create('span', { role: 'img', 'aria-label': 'Close' }, '✕'),
    DeepLink: ({ text }: { text: ReactNode }) => create('span', {}, text),
  },
});

// Credentials that the reader entered take precedence over those of the bar.
function send(url: string, request: SwaggerRequest): Promise<Response> {
  const headers = new Headers({ ...request.headers, ...clientHeaders });
  const isPlaceholder = headers.get('Authorization') === `Bearer ${PLACEHOLDER}`;
  const sendAs = (token?: string): Promise<Response> => {
    const own = new Headers(headers);
    if (isPlaceholder && token === undefined) own.delete('Authorization');
    else if (isPlaceholder) own.set('Authorization', `Bearer ${token}`);
    return fetch(url, { ...request, headers: own });
  };
  return isPlaceholder ? withToken(sendAs) : sendAs();
}

function withDownload({ info }: OpenApi): string {
  return `${info?.description ?? ''}\n\n[Download the OpenAPI document](${home}/openapi.json)`;
}

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
