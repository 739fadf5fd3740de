import { z } from 'zod';
import type { Config } from '../../core/config.ts';
import type { Access, Route } from '../../api/route.ts';
import { deprecationHeaders } from '../deprecation.ts';
import { canonicalHeaderName } from '../../http/request-headers.ts';
import { exampleOf, schemaOf, type Components, type Json } from './json-schema.ts';
import { responsesOf } from './responses.ts';

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  schema: { type: 'string' },
  description: 'Entity tag of the cached response.',
};

/** Returns an endpoint as an operation, with its GraphQL equivalent. */
export function operationOf(
  config: Config,
  tag: string,
  endpoint: Route,
  components: Components,
): Json {
  const { summary, description, graphqlEquivalent } = endpoint;
  const parameters = parametersOf(endpoint, components);
  const requestBody = requestBodyOf(endpoint, components);
  return {
    operationId: operationIdOf(endpoint),
    summary,
    description,
    tags: [tag],
    ...('Deprecation' in deprecationHeaders(config, endpoint) && { deprecated: true }),
    security: securityOf(endpoint),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: responsesOf(endpoint, components),
    'x-graphql': {
      operation: graphqlEquivalent.operation,
      variables: graphqlEquivalent.variables ?? {},
    },
  };
}

function operationIdOf({ method, path }: Route): string {
  const words = path.split(/[/{}_-]+/).filter((word) => word !== '');
  return (
    method.toLowerCase() +
    words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  );
}

function parametersOf({ input, documented, rowCounts }: Route, components: Components): Json[] {
  const { path, query, headers } = { ...input, ...documented };
  return [
    ...parametersIn('path', path, components),
    ...parametersIn('query', query, components),
    ...parametersIn('header', headers, components),
    ...(rowCounts === undefined ? [] : [IF_NONE_MATCH]),
  ];
}

function parametersIn(
  location: 'path' | 'query' | 'header',
  schema: z.ZodType | undefined,
  components: Components,
): Json[] {
  if (!schema) return [];
  const objectSchema = schemaOf(schema, 'input', components) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  const { properties = {}, required = [] } = objectSchema;
  // Credentials belong to `security` (OpenAPI 3.1, 4.8.12.1).
  const named = Object.entries(properties).filter(([name]) => name !== 'authorization');
  return named.map(([name, { description, ...parameterSchema }]) => ({
    name: location === 'header' ? canonicalHeaderName(name) : name,
    in: location,
    required: location === 'path' || required.includes(name),
    description,
    schema: parameterSchema,
  }));
}

function requestBodyOf(
  { input, documented, bodyOptional, examples }: Route,
  components: Components,
): Json | undefined {
  const { form, json } = { ...input, ...documented };
  const body = form ?? json;
  if (!body) return undefined;
  const schema = schemaOf(body, 'input', components);
  const named =
    examples &&
    Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
  const example = named ? { examples: named } : { example: exampleOf(schema, components) };
  // Forms are also accepted as multipart/form-data. Code generators would rename the types of a
  // body with two media types.
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  return { required: bodyOptional !== true, content: { [type]: { schema, ...example } } };
}

function securityOf({ input, documented, access }: Route): Json[] {
  const { headers } = { ...input, ...documented };
  const anyOf = (scopes: readonly Access[]): Json[] => [
    { passwordAuth: scopes },
    { bearerAuth: [] },
    { sessionKey: [] },
  ];
  if (access === 'login')
    return headers instanceof z.ZodObject && 'authorization' in headers.shape
      ? [{}, { basicAuth: [] }]
      : [{}];
  if (access === 'public' || typeof access === 'function') return [{}, ...anyOf([])];
  return anyOf(access === 'signed-in' ? [] : [access]);
}
