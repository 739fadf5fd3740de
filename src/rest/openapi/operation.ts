import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import type { Route } from '../../api/route.ts';
import type { Config } from '../../core/config.ts';
import { canonicalHeaderName } from '../../http/headers.ts';
import { deprecationHeaders } from '../deprecation.ts';
import { errorResponsesOf } from './errors.ts';
import type { Components, Json } from './schema.ts';

const STRING = { type: 'string' };
const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  schema: STRING,
  description: 'Entity tag of the cached response.',
};
const NOT_MODIFIED = { description: 'The client has the current version.' };
const CACHE_HEADERS = {
  ETag: 'Entity tag, if the request had no credentials.',
  'Cache-Control': 'Cacheability of the response (RFC 9111, 5.2.2).',
};

/**
 * Returns an endpoint as an operation, with its GraphQL equivalent. JSON omits undefined members.
 */
export function operationOf(config: Config, tag: string, route: Route, components: Components) {
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
    parameters: parametersOf(route, components),
    requestBody: requestBodyOf(route, components),
    responses: {
      [success.status]: successOf(route, components),
      ...(rowCounts !== undefined && { 304: NOT_MODIFIED }),
      ...errorResponsesOf(route, components),
    },
    'x-graphql': { operation, variables },
  };
}

function parametersOf({ input, documented, rowCounts }: Route, components: Components) {
  const { path, query, headers: header } = { ...input, ...documented };
  const parameters = Object.entries({ path, query, header }).flatMap(([location, part]) => {
    const { properties = {}, required = [] } = part ? components.schemaOf(part, 'input') : {};
    // Credentials belong to `security` (OpenAPI 3.1, 4.8.12.1).
    const { authorization: _credentials, ...documentedProperties } = properties;
    return Object.entries(documentedProperties).map(([name, { description, ...schema }]) => ({
      name: location === 'header' ? canonicalHeaderName(name) : name,
      in: location,
      required: location === 'path' || required.includes(name),
      description,
      schema,
    }));
  });
  const all: Json[] = rowCounts === undefined ? parameters : [...parameters, IF_NONE_MATCH];
  return all.length > 0 ? all : undefined;
}

function requestBodyOf(route: Route, components: Components) {
  const { form, json } = { ...route.input, ...route.documented };
  const body = form ?? json;
  if (!body) return undefined;
  // Forms are also accepted as multipart/form-data. Code generators would rename the types of a
  // body with two media types.
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  const content = { [type]: components.contentOf(body, 'input', route.examples) };
  return { required: route.bodyOptional !== true, content };
}

function successOf({ success, rowCounts }: Route, components: Components) {
  const { status, body, documentedHeaders } = success;
  const descriptions = { ...documentedHeaders, ...(rowCounts !== undefined && CACHE_HEADERS) };
  const headers = Object.entries(descriptions).map(([name, description]) => [
    name,
    { description, schema: STRING },
  ]);
  return {
    description: `${STATUS_CODES[status]}.`,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
    content: { 'application/json': components.contentOf(body, 'output') },
  };
}

function securityOf({ input, documented, access }: Route): Json[] {
  const { headers } = { ...input, ...documented };
  const isBasic = headers instanceof z.ZodObject && 'authorization' in headers.shape;
  if (access === 'login') return isBasic ? [{}, { basicAuth: [] }] : [{}];
  const isOpen = access === 'public' || typeof access === 'function';
  const scopes = isOpen || access === 'signed-in' ? [] : [access];
  const schemes = [{ passwordAuth: scopes }, { bearerAuth: [] }, { sessionKey: [] }];
  return isOpen ? [{}, ...schemes] : schemes;
}
