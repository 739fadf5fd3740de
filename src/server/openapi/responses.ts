import { z } from 'zod';
import type { Route } from '../../kit/route.ts';
import { dataError, detailError, problem, validationError } from './errors.ts';
import { schemaOf, type Components, type Json } from './json-schema.ts';

/** By name: what may be refused, as what, and why. */
const REFUSALS = {
  BadRequest: { status: 400, why: 'The user is inactive, or the request cannot be read.' },
  Unauthorized: { status: 401, why: 'The credentials are missing or wrong.' },
  Forbidden: { status: 403, why: 'The caller lacks the scope.' },
  NotFound: { status: 404, why: 'There is none.' },
  Conflict: { status: 409, why: 'It would be there twice.' },
  ContentTooLarge: { status: 413, why: 'The body is too large.' },
  UnsupportedMediaType: { status: 415, why: 'The content type, charset or encoding is not supported.' },
  UnprocessableContent: { status: 422, why: 'The input is not valid.' },
  TooManyRequests: { status: 429, why: 'Too many logins have failed; Retry-After says when to try again.' },
  ServiceUnavailable: { status: 503, why: 'The service is not available at the moment; Retry-After says when to try again.' },
  Other: { status: 'default', why: 'Any other refusal, and faults.' },
} as const;

type Refusal = keyof typeof REFUSALS;

/** What a row may answer, by status: what the row says, and what follows from who may call it and what it reads. */
export function responsesOf(row: Route, components: Components): Json {
  const { status, body } = row.success;
  const headers = headersOf(row);
  return {
    [status]: {
      description: 'Done.',
      ...(Object.keys(headers).length > 0 && { headers }),
      content: { 'application/json': { schema: schemaOf(body, 'output', components) } },
    },
    ...(row.tally !== undefined && { 304: { description: 'The client has it already.' } }),
    ...Object.fromEntries(refusalsOf(row).map((name) => [REFUSALS[name].status, refusal(name, row, components)])),
  };
}

function headersOf({ success, tally }: Route): Json {
  const documented = {
    ...success.documentedHeaders,
    ...(tally !== undefined && {
      ETag: 'The tag of the answer, where the request had no credentials.',
      'Cache-Control': 'Who may keep it, and for how long.',
    }),
  };
  return Object.fromEntries(Object.entries(documented).map(([name, description]) => [name, { description, schema: { type: 'string' } }]));
}

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

// The session router has its own words for all but what is wrong with input, and credentials on the request.
function refusal(name: Refusal, { errorKey }: Route, components: Components): Json {
  const isOfSessions = errorKey === 'data' && name !== 'UnprocessableContent';
  const shape = name === 'UnprocessableContent' ? validationError : isOfSessions ? z.union([dataError, detailError]) : detailError;
  const named = (isOfSessions ? 'Session' : '') + name;
  components.responses[named] ??= {
    description: REFUSALS[name].why,
    content: {
      'application/json': { schema: schemaOf(shape, 'output', components) },
      'application/problem+json': { schema: schemaOf(problem, 'output', components) },
    },
  };
  return { $ref: `#/components/responses/${named}` };
}
