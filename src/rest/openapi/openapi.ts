import type { Config } from '../../core/config.ts';
import type { Feature } from '../../api/feature.ts';
import { scopeDescription, SCOPES } from '../../core/scopes.ts';
import { VERSION } from '../../core/version.ts';
import { JSON_TYPE } from '../../http/responses.ts';
import { answerFromClientCache, codedTagOf, tagOf } from '../../http/http-cache.ts';
import { codingFor, CompressedForms, sendCompressed } from '../../http/compression.ts';
import type { Endpoint } from '../../http/paths.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import type { Components, Json } from './json-schema.ts';
import { operationOf } from './operation.ts';

const INFO = {
  title: 'Shopfront',
  version: VERSION,
  summary: 'The REST API of the shop, for clients of the original services.',
  description:
    'Every operation has a GraphQL equivalent (`x-graphql`), for clients that move to the GraphQL API. Credentials are the same in both APIs: ' +
    'an access token as `Authorization: Bearer`, or a session key as `X-SESSION-ID`. A trailing slash in paths is optional.',
  contact: { name: 'The maintainers of Shopfront' },
  license: { name: 'MIT', identifier: 'MIT' },
};

const securitySchemes = (base: string) => ({
  passwordAuth: {
    type: 'oauth2',
    description:
      'An access token from `POST /token`, for username and password. `offline_access` adds a refresh token.',
    flows: {
      password: {
        tokenUrl: `${base}/token`,
        refreshUrl: `${base}/token`,
        scopes: {
          ...Object.fromEntries(SCOPES.map((scope) => [scope, scopeDescription(scope)])),
          offline_access: 'Also returns a refresh token.',
        },
      },
    },
  },
  bearerAuth: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token or an API key.',
  },
  sessionKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-SESSION-ID',
    description: 'A session key from the session login. `X-SESSIONID` is also accepted.',
  },
  basicAuth: {
    type: 'http',
    scheme: 'basic',
    description: 'Username and password, only at `GET /api/v2/auth/login`.',
  },
});

/** Returns the endpoint `/openapi.json` if the explorers are enabled. */
export function openapiEndpoints(
  { config }: Dependencies,
  features: readonly Feature[],
): Endpoint[] {
  if (!config.graphqlExplorer) return [];
  const body = openapiText(config, features);
  const tag = tagOf(body);
  const forms = new CompressedForms(body);
  return [
    {
      method: 'GET',
      path: '/openapi.json',
      errorKey: 'detail',
      handle: async (exchange) => {
        const coding = codingFor(exchange, config, body);
        if (answerFromClientCache(exchange, config, codedTagOf(tag, coding))) return;
        await sendCompressed(exchange, coding, 200, { body, forms }, JSON_TYPE);
      },
    },
  ];
}

/** Returns the document as text, as committed. */
export function openapiText(config: Config, features: readonly Feature[]): string {
  return `${JSON.stringify(openapiOf(config, features), undefined, 2)}\n`;
}

/**
 * Returns the endpoints of these features as an OpenAPI 3.1 document, described only by themselves.
 */
export function openapiOf(config: Config, features: readonly Feature[]): Json {
  const base = (config.isPublicUrlSet ? config.publicUrl : '') + config.basePath;
  const components: Components = { schemas: {}, responses: {} };
  const paths: Record<string, Json> = {};
  for (const { title = '', routes } of features) {
    for (const endpoint of routes?.(config) ?? []) {
      (paths[endpoint.path] ??= {})[endpoint.method.toLowerCase()] = operationOf(
        config,
        title,
        endpoint,
        components,
      );
    }
  }
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: base === '' ? '/' : base, description: 'This server.' }],
    tags: features.flatMap(({ title, description, routes }) =>
      routes && title !== undefined ? [{ name: title, description }] : [],
    ),
    paths,
    components: {
      securitySchemes: securitySchemes(base),
      responses: sorted(components.responses),
      schemas: sorted(components.schemas),
    },
  };
}

function sorted(named: Json): Json {
  return Object.fromEntries(
    Object.entries(named).toSorted(([one], [other]) => one.localeCompare(other)),
  );
}
