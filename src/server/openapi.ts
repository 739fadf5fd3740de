import { z } from 'zod';
import type { Config } from '../kit/config.ts';
import type { Feature } from '../kit/feature.ts';
import type { Access, Route } from '../kit/route.ts';
import { JSON_TYPE } from './answers.ts';
import { answeredAsKept, tagOf } from './caching.ts';
import { deprecationHeaders } from './deprecation.ts';
import type { Endpoint } from './paths.ts';
import type { Services } from './services.ts';

type Json = Record<string, unknown>;

/** What several operations share, by name; filled while they are written. */
interface Components {
  schemas: Json;
  responses: Json;
}

const JSON_BODY = 'application/json';
const FORM_BODY = 'application/x-www-form-urlencoded';
const PROBLEM = 'application/problem+json';

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

/** What errors look like (docs/decisions.md, "REST"). */
const ERROR_SCHEMAS = {
  Error: object({ detail: { type: 'string', description: 'What is wrong.' } }, 'An error.'),
  SessionError: object({ data: { type: 'string', description: 'What is wrong.' } }, 'An error of the session router.'),
  ValidationError: object(
    {
      detail: {
        type: 'array',
        description: 'One entry for each mistake.',
        items: object({
          type: { type: 'string', description: 'The kind of mistake, for programs.', examples: ['missing'] },
          loc: { type: 'array', items: { type: ['string', 'integer'] }, description: 'Where it is.', examples: [['body', 'name']] },
          msg: { type: 'string', description: 'What is wrong.', examples: ['Field required'] },
        }),
      },
    },
    'What is wrong with the input, field by field.',
  ),
  Problem: {
    ...object(
      {
        type: { type: 'string', description: 'Always about:blank.' },
        title: { type: 'string', description: 'What the status means.' },
        status: { type: 'integer', description: 'The status.' },
        detail: { type: 'string', description: 'What is wrong.' },
        code: { type: 'string', description: 'The code of the same refusal at the GraphQL door.' },
        errors: {
          type: 'array',
          description: 'One entry for each mistake in the input.',
          items: object({
            field: { type: 'string', description: 'The field.' },
            type: { type: 'string', description: 'The kind of mistake, for programs.' },
            message: { type: 'string', description: 'What is wrong.' },
          }),
        },
      },
      'An error as RFC 9457 has it, for clients whose `Accept` names it.',
    ),
    required: ['type', 'title', 'status', 'detail', 'code'],
  },
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

/** The rows of these features as an OpenAPI 3.1 document: nothing in it is written anywhere but in them. */
export function openapiOf(config: Config, features: readonly Feature[]): Json {
  const components: Components = { schemas: { ...ERROR_SCHEMAS }, responses: {} };
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

function operationOf(config: Config, tag: string, row: Route, components: Components): Json {
  const { schemas } = components;
  const { summary, description, twin, access, bodyOptional } = row;
  const input = { ...row.input, ...row.documented };
  const parameters = [
    ...parametersOf('path', input.path, schemas),
    ...parametersOf('query', input.query, schemas),
    ...parametersOf('header', input.headers, schemas),
    ...(row.tally === undefined
      ? []
      : [{ name: 'If-None-Match', in: 'header', schema: { type: 'string' }, description: 'The tag of what the client has.' }]),
  ];
  const body = input.form ?? input.json;
  const content = body && { [input.form ? FORM_BODY : JSON_BODY]: { schema: schemaOf(body, 'input', schemas) } };
  return {
    operationId: operationIdOf(row),
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    ...('Deprecation' in deprecationHeaders(config, row) && { deprecated: true }),
    security: securityOf(row, access),
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: !bodyOptional, content } }),
    responses: responsesOf(row, components),
    'x-graphql': { operation: twin.operation, variables: twin.variables ?? {} },
  };
}

function operationIdOf({ method, path }: Route): string {
  const words = path.split(/[/{}_-]+/).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function parametersOf(place: 'path' | 'query' | 'header', schema: z.ZodType | undefined, schemas: Json): Json[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = schemaOf(schema, 'input', schemas) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return (
    Object.entries(properties)
      // OpenAPI has credentials elsewhere (4.8.12.2.1).
      .filter(([name]) => name !== 'authorization')
      .map(([name, { description, examples, ...rest }]) => ({
        name: place === 'header' ? titled(name) : name,
        in: place,
        required: place === 'path' || required.includes(name),
        ...(description !== undefined && { description }),
        schema: { ...rest, ...(examples !== undefined && { examples }) },
      }))
  );
}

function securityOf({ reads }: Route, access: Route['access']): Json[] {
  const either = (scopes: readonly Access[]): Json[] => [{ bearerAuth: scopes }, { sessionKey: scopes }];
  if (access === 'login') return reads?.includes('Authorization') ? [{}, { basicAuth: [] }] : [{}];
  if (access === 'public' || typeof access === 'function') return [{}, ...either([])];
  return either(access === 'signed-in' ? [] : [access]);
}

function responsesOf(row: Route, { schemas, responses }: Components): Json {
  const { success, tally } = row;
  const headers = {
    ...success.documentedHeaders,
    ...(tally !== undefined && {
      ETag: 'The tag of the answer, where the request had no credentials.',
      'Cache-Control': 'Who may keep it, and for how long.',
    }),
  };
  const documented = Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
  return {
    [success.status]: {
      description: 'Done.',
      ...(Object.keys(documented).length > 0 && { headers: documented }),
      content: { [JSON_BODY]: { schema: schemaOf(success.body, 'output', schemas) } },
    },
    ...(tally !== undefined && { 304: { description: 'The client has it already.' } }),
    ...Object.fromEntries(refusalsOf(row).map((name) => [REFUSALS[name].status, refusal(name, row, responses)])),
  };
}

// By name: what may be refused, as what, and why.
const REFUSALS = {
  BadRequest: { status: 400, what: 'The user is inactive, or the request cannot be read.' },
  Unauthorized: { status: 401, what: 'The credentials are missing or wrong.' },
  Forbidden: { status: 403, what: 'The caller lacks the scope.' },
  NotFound: { status: 404, what: 'There is none.' },
  Conflict: { status: 409, what: 'It would be there twice.' },
  ContentTooLarge: { status: 413, what: 'The body is too large.' },
  UnsupportedMediaType: { status: 415, what: 'The content type, charset or encoding is not supported.' },
  UnprocessableContent: { status: 422, what: 'The input is not valid.' },
  TooManyRequests: { status: 429, what: 'Too many logins have failed; Retry-After says when to try again.' },
  ServiceUnavailable: { status: 503, what: 'The service is not available at the moment; Retry-After says when to try again.' },
  Other: { status: 'default', what: 'Any other refusal, and faults.' },
} as const;

type Refusal = keyof typeof REFUSALS;

// A row's refusals follow from who may call it and what it reads.
function refusalsOf({ access, input = {}, method, path }: Route): Refusal[] {
  const body = input.json ?? input.form;
  const isLogin = access === 'login' || typeof access === 'function';
  const applying: [Refusal, boolean][] = [
    ['BadRequest', true],
    ['Unauthorized', true],
    ['Forbidden', typeof access === 'string' && access.includes(':')],
    ['NotFound', path.includes('{')],
    ['Conflict', method === 'POST' && !isLogin],
    ['ContentTooLarge', body !== undefined],
    ['UnsupportedMediaType', body !== undefined],
    ['UnprocessableContent', (body ?? input.query ?? input.headers) !== undefined],
    ['TooManyRequests', isLogin],
    ['ServiceUnavailable', true],
    ['Other', true],
  ];
  return applying.flatMap(([name, applies]) => (applies ? [name] : []));
}

function refusal(name: Refusal, { errorKey }: Route, responses: Json): Json {
  const isOfSessions = errorKey === 'data' && name !== 'UnprocessableContent';
  const named = (isOfSessions ? 'Session' : '') + name;
  const shapes = name === 'UnprocessableContent' ? ['ValidationError'] : isOfSessions ? ['SessionError', 'Error'] : ['Error'];
  responses[named] = {
    description: REFUSALS[name].what,
    content: { [JSON_BODY]: { schema: oneOf(shapes) }, [PROBLEM]: { schema: oneOf(['Problem']) } },
  };
  return { $ref: `#/components/responses/${named}` };
}

function oneOf(names: readonly string[]): Json | undefined {
  const schemas = names.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  return schemas.length === 1 ? schemas[0] : { anyOf: schemas };
}

// A schema that has a name stands among the components, once.
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const {
    $schema: _dialect,
    $defs = {},
    ...own
  } = moved(
    z.toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      // zod leaves out the examples of input that it reads as something else; these are of what is sent.
      override: ({ zodSchema, jsonSchema }) => {
        const { examples } = z.globalRegistry.get(zodSchema) ?? {};
        if (examples !== undefined) jsonSchema.examples = examples as unknown[];
      },
    }) as Json,
  ) as { $schema?: string; $defs?: Json } & Json;
  Object.assign(schemas, $defs);
  return own;
}

function moved(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
}

function object(properties: Json, description?: string): Json {
  return {
    type: 'object',
    ...(description !== undefined && { description }),
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

function sorted(schemas: Json): Json {
  return Object.fromEntries(Object.entries(schemas).toSorted(([one], [other]) => one.localeCompare(other)));
}

function titled(header: string): string {
  return header.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
