import { STATUS_CODES } from 'node:http';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import type { Feature } from '../api/feature.ts';
import type { Route } from '../api/route.ts';
import type { Config } from '../core/config.ts';
import { deprecationHeaders } from '../core/deprecation.ts';
import { isScope } from '../core/scopes.ts';
import { VERSION } from '../core/version.ts';
import { sendCompressible } from '../http/responses.ts';
import type { Endpoint } from '../http/endpoints.ts';
import { mappingOf } from '../http/error-map.ts';

/** A JSON object of the document. JSON omits undefined members. */
type Json = Record<string, unknown>;

/** Returns the JSON Schema of input or output. */
type SchemaOf = (schema: z.ZodType, io: 'input' | 'output') => Json;

const INFO = {
  title: 'Shopfront',
  version: VERSION,
  summary: 'The REST API of the shop, for clients of the original services.',
  description:
    'Every operation has a GraphQL equivalent (`x-graphql`). A trailing slash is optional.',
  license: { name: 'MIT', identifier: 'MIT' },
};

const SECURITY_SCHEMES = {
  bearerAuth: { type: 'http', scheme: 'bearer', description: 'An access token or an API key.' },
  sessionKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-SESSION-ID',
    description: 'A session key from the session login.',
  },
};

const text = (description: string) => z.string().meta({ description });

/** Members that RFC 6749, 5.2, adds to errors of the token endpoints. */
const OAUTH = {
  error: text('Error code of RFC 6749, if grant_type was sent.').optional(),
  error_description: text('Error message, if grant_type was sent.').optional(),
};
const ERROR = z
  .object({ detail: text('Error message.'), ...OAUTH })
  .meta({ id: 'Error', description: 'An error.' });
// Errors about the credentials of a request have the format of the other routers.
const SESSION_ERROR = z
  .object({ data: text('Error message.').optional(), detail: text('Error message.').optional() })
  .meta({ id: 'SessionError', description: 'An error of the session router.' });
const INPUT_ERROR = z
  .object({
    detail: z
      .array(
        z.object({
          type: text('Kind of the error.'),
          loc: z.array(z.string()).meta({ description: 'Location of the value.' }),
          msg: text('Error message.'),
        }),
      )
      .meta({ description: 'One entry per error.' }),
    ...OAUTH,
  })
  .meta({ id: 'ValidationError', description: 'Invalid input, field by field.' });

/** Returns the endpoint `/openapi.json` if the explorers are enabled. */
export function openapiEndpoints(config: Config, features: readonly Feature[]): Endpoint[] {
  if (!config.graphqlExplorer) return [];
  const body = openapiText(config, features);
  const handler: RequestHandler = (_req, res) => sendCompressible(res, config, { body });
  return [{ method: 'GET', path: '/openapi.json', handlers: [handler] }];
}

/** Returns the document as text, as committed. */
export function openapiText(config: Config, features: readonly Feature[]): string {
  return `${JSON.stringify(openapiOf(config, features), undefined, 2)}\n`;
}

/** Returns the endpoints of these features as an OpenAPI 3.1 document. */
export function openapiOf(config: Config, features: readonly Feature[]): Json {
  const base = (config.isPublicUrlSet ? config.publicUrl : '') + config.basePath;
  const schemas: Json = {};
  // Schemas with an id are components.
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): Json => {
    const generated = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      // zod omits examples of input that it transforms. These examples are of the sent values.
      override: ({ zodSchema, jsonSchema }) => {
        const { examples } = z.globalRegistry.get(zodSchema) ?? {};
        if (examples) jsonSchema.examples = examples as unknown[];
      },
    });
    const json = JSON.stringify(generated).replaceAll('#/$defs/', '#/components/schemas/');
    const { $schema: _dialect, $defs, ...own } = JSON.parse(json) as Json;
    Object.assign(schemas, $defs);
    return own;
  };
  const paths: Record<string, Json> = {};
  for (const { title = '', routes } of features)
    for (const route of routes?.(config) ?? []) {
      const operations = (paths[route.path] ??= {});
      operations[route.method.toLowerCase()] = operationOf(config, title, route, schemaOf);
    }
  return {
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: base || '/' }],
    tags: features.flatMap(({ title, description, routes }) =>
      routes && title !== undefined ? [{ name: title, description }] : [],
    ),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, schemas },
  };
}

// Returns an endpoint as an operation, with its GraphQL equivalent.
function operationOf(config: Config, tag: string, route: Route, schemaOf: SchemaOf): Json {
  const { method, path, summary, description, success, rowCounts } = route;
  const { operation, variables = {} } = route.graphqlEquivalent;
  const words = path.split(/[/{}_-]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return {
    operationId: method.toLowerCase() + words.join(''),
    summary,
    description,
    tags: [tag],
    deprecated: 'Deprecation' in deprecationHeaders(config, route) || undefined,
    security: securityOf(route),
    parameters: parametersOf(route, schemaOf),
    requestBody: requestBodyOf(route, schemaOf),
    responses: {
      [success.status]: jsonResponse(success.status, schemaOf(success.body, 'output')),
      ...(rowCounts !== undefined && { 304: { description: 'Not Modified' } }),
      ...errorsOf(route, schemaOf),
    },
    'x-graphql': { operation, variables },
  };
}

function parametersOf({ input, documented }: Route, schemaOf: SchemaOf): Json[] {
  const { path, query, headers: header } = { ...input, ...documented };
  return Object.entries({ path, query, header }).flatMap(([location, part]) => {
    const { properties = {}, required = [] } = (part ? schemaOf(part, 'input') : {}) as {
      properties?: Record<string, Json>;
      required?: string[];
    };
    // Credentials belong to `security` (OpenAPI 3.1, 4.8.12.1).
    const { authorization: _credentials, ...documentedProperties } = properties;
    return Object.entries(documentedProperties).map(([name, { description, ...schema }]) => ({
      // Header names are capitalized, such as Idempotency-Key.
      name: location === 'header' ? name.replace(/\b[a-z]/g, (a) => a.toUpperCase()) : name,
      in: location,
      required: location === 'path' || required.includes(name),
      description,
      schema,
    }));
  });
}

function requestBodyOf(route: Route, schemaOf: SchemaOf): Json | undefined {
  const { form, json } = { ...route.input, ...route.documented };
  const body = form ?? json;
  if (!body) return undefined;
  const examples = Object.entries(route.examples ?? {}).map(([name, value]) => [name, { value }]);
  const content = {
    schema: schemaOf(body, 'input'),
    ...(examples.length > 0 && { examples: Object.fromEntries(examples) as Json }),
  };
  // Forms are also accepted as multipart/form-data. Code generators would rename the types of a
  // body with two media types.
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  return { required: route.bodyOptional !== true, content: { [type]: content } };
}

// `default` stands for errors that any endpoint may send.
function errorsOf({ access, errors = [], errorKey, input }: Route, schemaOf: SchemaOf): Json {
  const error = errorKey === 'data' ? SESSION_ERROR : ERROR;
  const schemas = new Map<number | 'default', z.ZodType>([['default', error]]);
  if (access !== 'login') schemas.set(401, error);
  if (typeof access === 'string' && isScope(access)) schemas.set(403, error);
  // A primary key that is no number is not found.
  if (Object.keys(input ?? {}).some((part) => part !== 'path')) schemas.set(422, INPUT_ERROR);
  for (const own of errors) {
    const { status } = mappingOf(own, errorKey);
    schemas.set(status, status === 422 ? INPUT_ERROR : error);
  }
  const responses = Array.from(schemas, ([status, schema]) => [
    status,
    jsonResponse(status, schemaOf(schema, 'output')),
  ]);
  return Object.fromEntries(responses) as Json;
}

function jsonResponse(status: number | string, schema: Json): Json {
  const description = STATUS_CODES[status] ?? 'Any other error';
  return { description, content: { 'application/json': { schema } } };
}

function securityOf({ access }: Route): Json[] {
  if (access === 'login') return [{}];
  const isOpen = access === 'public' || typeof access === 'function';
  return [...(isOpen ? [{}] : []), { bearerAuth: [] }, { sessionKey: [] }];
}
