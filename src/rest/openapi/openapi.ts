import type { RequestHandler } from 'express';
import type { Config } from '../../core/config.ts';
import type { Feature } from '../../api/feature.ts';
import { scopeDescription, SCOPES } from '../../core/scopes.ts';
import { VERSION } from '../../core/version.ts';
import { allowCompression, CompressedForms, sendStored } from '../../http/compression.ts';
import type { Endpoint } from '../../http/endpoints.ts';
import { sendIfNotModified, tagOf } from '../../http/responses.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import { operationOf } from './operation.ts';
import { Components, type Json } from './schema.ts';

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

const SCOPE_DESCRIPTIONS = {
  ...Object.fromEntries(SCOPES.map((scope) => [scope, scopeDescription(scope)])),
  offline_access: 'Also returns a refresh token.',
};

// JSON omits an undefined format.
const httpScheme = (scheme: string, description: string, bearerFormat?: string) => {
  return { type: 'http', scheme, bearerFormat, description };
};
const securitySchemes = (tokenUrl: string) => ({
  passwordAuth: {
    type: 'oauth2',
    description:
      'An access token from `POST /token`, for username and password. `offline_access` adds a refresh token.',
    flows: { password: { tokenUrl, refreshUrl: tokenUrl, scopes: SCOPE_DESCRIPTIONS } },
  },
  bearerAuth: httpScheme('bearer', 'An access token or an API key.', 'JWT'),
  sessionKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-SESSION-ID',
    description: 'A session key from the session login. `X-SESSIONID` is also accepted.',
  },
  basicAuth: httpScheme('basic', 'Username and password, only at `GET /api/v2/auth/login`.'),
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
  const handler: RequestHandler = async (_req, res) => {
    allowCompression(res, config, { body, forms });
    if (!sendIfNotModified(res, config, tag)) await sendStored(res, { body, forms });
  };
  const errorFormat = { errorKey: 'detail', inputPart: 'query' } as const;
  return [{ method: 'GET', path: '/openapi.json', errorFormat, handlers: [handler] }];
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
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const { title = '', routes } of features)
    for (const route of routes?.(config) ?? []) {
      const operations = (paths[route.path] ??= {});
      operations[route.method.toLowerCase()] = operationOf(config, title, route, components);
    }
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: base || '/', description: 'This server.' }],
    tags: features.flatMap(({ title, description, routes }) =>
      routes && title !== undefined ? [{ name: title, description }] : [],
    ),
    paths,
    components: {
      securitySchemes: securitySchemes(`${base}/token`),
      responses: sorted(components.responses),
      schemas: sorted(components.schemas),
    },
  };
}

function sorted(named: Json): Json {
  return Object.fromEntries(Object.entries(named).toSorted(([a], [b]) => a.localeCompare(b)));
}
