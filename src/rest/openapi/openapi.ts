import type { Config } from '../../core/config.ts';
import type { Feature } from '../../api/feature.ts';
import { allowedBy, SCOPES } from '../../core/scopes.ts';
import { VERSION } from '../../core/version.ts';
import { JSON_TYPE } from '../../http/responses.ts';
import { answeredAsKept, codedTagOf, tagOf } from '../../http/http-cache.ts';
import { codingFor, Forms, sendCompressed } from '../../http/compression.ts';
import type { Endpoint } from '../../http/paths.ts';
import type { Services } from '../../http/dependencies.ts';
import type { Components, Json } from './json-schema.ts';
import { operationOf } from './operation.ts';

const INFO = {
  title: 'Shopfront',
  version: VERSION,
  summary: 'The REST API of the shop: the paths that clients of the original services call.',
  description:
    'Every operation has a GraphQL equivalent (`x-graphql`), for clients that move to the GraphQL API. Credentials are the same in both APIs: ' +
    'an access token as `Authorization: Bearer`, or a session key as `X-SESSION-ID`. Paths are served with and without a slash at their end.',
  contact: { name: 'The maintainers of Shopfront' },
  license: { name: 'MIT', identifier: 'MIT' },
};

const securitySchemes = (base: string) => ({
  passwordAuth: {
    type: 'oauth2',
    description: 'An access token, from `POST /token` by username and password. `offline_access` adds a refresh token.',
    flows: {
      password: {
        tokenUrl: `${base}/token`,
        refreshUrl: `${base}/token`,
        scopes: {
          ...Object.fromEntries(SCOPES.map((scope) => [scope, allowedBy(scope)])),
          offline_access: 'Get a refresh token, too.',
        },
      },
    },
  },
  bearerAuth: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token or an API key.' },
  sessionKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-SESSION-ID',
    description: 'A session key, from the session login. X-SESSIONID is read, too.',
  },
  basicAuth: { type: 'http', scheme: 'basic', description: 'Username and password, at `GET /api/v2/auth/login` alone.' },
});

/** `/openapi.json`, where the explorers are on. */
export function openapiEndpoints({ config }: Services, features: readonly Feature[]): Endpoint[] {
  if (!config.explorer) return [];
  const body = openapiText(config, features);
  const tag = tagOf(body);
  const forms = new Forms(body);
  return [
    {
      method: 'GET',
      path: '/openapi.json',
      errorKey: 'detail',
      answer: async (exchange) => {
        const coding = codingFor(exchange, config, body);
        if (answeredAsKept(exchange, config, codedTagOf(tag, coding))) return;
        await sendCompressed(exchange, coding, 200, { body, forms }, JSON_TYPE);
      },
    },
  ];
}

/** The document as text, as it is committed. */
export function openapiText(config: Config, features: readonly Feature[]): string {
  return `${JSON.stringify(openapiOf(config, features), undefined, 2)}\n`;
}

/** The rows of these features as an OpenAPI 3.1 document: what it says of a row is said in the row, and nowhere else. */
export function openapiOf(config: Config, features: readonly Feature[]): Json {
  const base = (config.isPublicUrlSet ? config.publicUrl : '') + config.basePath;
  const components: Components = { schemas: {}, responses: {} };
  const paths: Record<string, Json> = {};
  for (const { title = '', routes } of features) {
    for (const row of routes?.(config) ?? []) {
      (paths[row.path] ??= {})[row.method.toLowerCase()] = operationOf(config, title, row, components);
    }
  }
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: base === '' ? '/' : base, description: 'This shop.' }],
    tags: features.flatMap(({ title, description, routes }) => (routes && title !== undefined ? [{ name: title, description }] : [])),
    paths,
    components: { securitySchemes: securitySchemes(base), responses: sorted(components.responses), schemas: sorted(components.schemas) },
  };
}

function sorted(named: Json): Json {
  return Object.fromEntries(Object.entries(named).toSorted(([one], [other]) => one.localeCompare(other)));
}
