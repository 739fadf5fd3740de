import type { Config } from '../../kit/config.ts';
import type { Feature } from '../../kit/feature.ts';
import { JSON_TYPE } from '../answers.ts';
import { answeredAsKept, tagOf } from '../caching.ts';
import type { Endpoint } from '../paths.ts';
import type { Services } from '../services.ts';
import type { Components, Json } from './json-schema.ts';
import { operationOf } from './operation.ts';

const INFO = {
  title: 'Shopfront',
  version: '1.0.0',
  summary: 'The REST door of the shop: the paths that legacy clients have always called.',
  description:
    'Every operation names its twin at the GraphQL door (`x-graphql`), which a client that moves takes in its place. Credentials are the same at both: ' +
    'an access token as `Authorization: Bearer`, or a session key as `X-SESSION-ID`. Paths are served with and without a slash at their end.',
  license: { name: 'MIT', identifier: 'MIT' },
};

const SECURITY_SCHEMES = {
  bearerAuth: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token, from `POST /token`.' },
  sessionKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-SESSION-ID',
    description: 'A session key, from the session login. X-SESSIONID is read, too.',
  },
  basicAuth: { type: 'http', scheme: 'basic', description: 'Username and password, at `GET /api/v2/auth/login` alone.' },
};

/** `/openapi.json`, where the explorers are on. */
export function openapiEndpoints({ config }: Services, features: readonly Feature[]): Endpoint[] {
  if (!config.explorer) return [];
  const body = openapiText(config, features);
  const tag = tagOf(body);
  return [
    {
      method: 'GET',
      path: '/openapi.json',
      reads: ['If-None-Match'],
      errorKey: 'detail',
      answer: async (exchange) => {
        if (!answeredAsKept(exchange, config, tag)) exchange.send(200, body, JSON_TYPE);
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
    servers: [{ url: config.basePath === '' ? '/' : config.basePath, description: 'This shop.' }],
    tags: features.flatMap(({ title, routes }) => (routes && title !== undefined ? [{ name: title }] : [])),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, responses: sorted(components.responses), schemas: sorted(components.schemas) },
  };
}

function sorted(named: Json): Json {
  return Object.fromEntries(Object.entries(named).toSorted(([one], [other]) => one.localeCompare(other)));
}
