import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import type { Route } from '../../api/route.ts';
import type { Config } from '../../core/config.ts';
import { canonicalHeaderName } from '../../http/headers.ts';
import { deprecationHeaders } from '../deprecation.ts';
import { errorResponsesOf } from './errors.ts';
import { exampleOf, namedExamples, schemaOf, type Components, type Json } from './schema.ts';

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  schema: { type: 'string' },
  description: 'Entity tag of the cached response.',
};
const NOT_MODIFIED = { description: 'The client has the current version.' };
const CACHE_HEADERS = {
  ETag: 'Entity tag, if the request had no credentials.',
  'Cache-Control': 'Cacheability of the response (RFC 9111, 5.2.2).',
};

/** Returns an endpoint as an operation, with its GraphQL equivalent. */
export function operationOf(config: Config, tag: string, route: Route, components: Components) {
  const { summary, description, rowCounts, graphqlEquivalent } = route;
  const parameters = parametersOf(route, components);
  const requestBody = requestBodyOf(route, components);
  return {
    operationId: operationIdOf(route),
    summary,
    description,
    tags: [tag],
    ...('Deprecation' in deprecationHeaders(config, route) && { deprecated: true }),
    security: securityOf(route),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      [route.success.status]: successOf(route, components),
      ...(rowCounts !== undefined && { 304: NOT_MODIFIED }),
      ...errorResponsesOf(route, components),
    },
    'x-graphql': {
      operation: graphqlEquivalent.operation,
      variables: graphqlEquivalent.variables ?? {},
    },
  };
}

function operationIdOf({ method, path }: Route): string {
  const words = path.split(/[/{}_-]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return method.toLowerCase() + words.join('');
}

function parametersOf({ input, documented, rowCounts }: Route, components: Components): Json[] {
  const { path, query, headers } = { ...input, ...documented };
  const declared = Object.entries({ path, query, header: headers }).flatMap(([location, part]) => {
    if (!part) return [];
    const { properties = {}, required = [] } = schemaOf(part, 'input', components);
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
  return rowCounts === undefined ? declared : [...declared, IF_NONE_MATCH];
}

function requestBodyOf(
  { input, documented, bodyOptional, examples }: Route,
  components: Components,
) {
  const { form, json } = { ...input, ...documented };
  const body = form ?? json;
  if (!body) return undefined;
  const schema = schemaOf(body, 'input', components);
  const example = examples
    ? { examples: namedExamples(Object.entries(examples)) }
    : { example: exampleOf(schema, components) };
  // Forms are also accepted as multipart/form-data. Code generators would rename the types of a
  // body with two media types.
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  return { required: bodyOptional !== true, content: { [type]: { schema, ...example } } };
}

function successOf({ success, rowCounts }: Route, components: Components): Json {
  const { status, body, documentedHeaders } = success;
  const descriptions = { ...documentedHeaders, ...(rowCounts !== undefined && CACHE_HEADERS) };
  const headers = Object.entries(descriptions).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ]);
  const schema = schemaOf(body, 'output', components);
  return {
    description: `${STATUS_CODES[status]}.`,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
    content: { 'application/json': { schema, example: exampleOf(schema, components) } },
  };
}

function securityOf({ input, documented, access }: Route): Json[] {
  const { headers } = { ...input, ...documented };
  const isBasic = headers instanceof z.ZodObject && 'authorization' in headers.shape;
  if (access === 'login') return isBasic ? [{}, { basicAuth: [] }] : [{}];
  const isOpen = access === 'public' || typeof access === 'function';
  const scopes = isOpen || access === 'signed-in' ? [] : [access];
  return [
    ...(isOpen ? [{}] : []),
    { passwordAuth: scopes },
    { bearerAuth: [] },
    { sessionKey: [] },
  ];
}
