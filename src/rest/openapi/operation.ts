import { z } from 'zod';
import type { Config } from '../../core/config.ts';
import type { Access, Route } from '../../api/route.ts';
import { deprecationHeaders } from '../deprecation.ts';
import { titled } from '../../http/request-headers.ts';
import { exampleOf, schemaOf, type Components, type Json } from './json-schema.ts';
import { responsesOf } from './responses.ts';

const IF_NONE_MATCH = { name: 'If-None-Match', in: 'header', schema: { type: 'string' }, description: 'The tag of what the client has.' };

/** A row as an operation: what it reads, who may call it, what it answers, and its twin. */
export function operationOf(config: Config, tag: string, row: Route, components: Components): Json {
  const { summary, description, twin } = row;
  const parameters = parametersOf(row, components);
  const requestBody = requestBodyOf(row, components);
  return {
    operationId: operationIdOf(row),
    summary,
    description,
    tags: [tag],
    ...('Deprecation' in deprecationHeaders(config, row) && { deprecated: true }),
    security: securityOf(row),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: responsesOf(row, components),
    'x-graphql': { operation: twin.operation, variables: twin.variables ?? {} },
  };
}

function operationIdOf({ method, path }: Route): string {
  const words = path.split(/[/{}_-]+/).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function parametersOf({ input, documented, tally }: Route, components: Components): Json[] {
  const { path, query, headers } = { ...input, ...documented };
  return [
    ...parametersIn('path', path, components),
    ...parametersIn('query', query, components),
    ...parametersIn('header', headers, components),
    ...(tally === undefined ? [] : [IF_NONE_MATCH]),
  ];
}

function parametersIn(place: 'path' | 'query' | 'header', schema: z.ZodType | undefined, components: Components): Json[] {
  if (!schema) return [];
  const read = schemaOf(schema, 'input', components) as { properties?: Record<string, Json>; required?: string[] };
  const { properties = {}, required = [] } = read;
  // Credentials stand under `security` (OpenAPI 3.1, 4.8.12.1).
  const named = Object.entries(properties).filter(([name]) => name !== 'authorization');
  return named.map(([name, { description, ...own }]) => ({
    name: place === 'header' ? titled(name) : name,
    in: place,
    required: place === 'path' || required.includes(name),
    description,
    schema: own,
  }));
}

function requestBodyOf({ input, documented, bodyOptional, examples }: Route, components: Components): Json | undefined {
  const { form, json } = { ...input, ...documented };
  const body = form ?? json;
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  if (!body) return undefined;
  const schema = schemaOf(body, 'input', components);
  const named = examples && Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
  const shown = named ? { examples: named } : { example: exampleOf(schema, components) };
  return { required: bodyOptional !== true, content: { [type]: { schema, ...shown } } };
}

function securityOf({ input, documented, access }: Route): Json[] {
  const { headers } = { ...input, ...documented };
  const either = (scopes: readonly Access[]): Json[] => [{ passwordAuth: scopes }, { bearerAuth: [] }, { sessionKey: [] }];
  if (access === 'login') return headers instanceof z.ZodObject && 'authorization' in headers.shape ? [{}, { basicAuth: [] }] : [{}];
  if (access === 'public' || typeof access === 'function') return [{}, ...either([])];
  return either(access === 'signed-in' ? [] : [access]);
}
