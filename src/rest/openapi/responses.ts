import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { DomainError } from '../../core/errors.ts';
import type { Route } from '../../api/route.ts';
import { isScope, type Scope } from '../../core/scopes.ts';
import { errorExample } from '../../http/responses.ts';
import { HttpError, tooLate, unavailable, usualError } from '../../http/http-error.ts';
import { wordingOf } from '../endpoint.ts';
import { dataError, detailError, problem, tokenError, tokenProblem, tokenValidationError, validationError } from './errors.ts';
import { exampleOf, schemaOf, type Components, type Json } from './json-schema.ts';

interface Documented {
  status: number | 'default';
  why: string;
  /** What the documents show, where the row has no example of its own. */
  examples?: readonly (DomainError | HttpError)[];
}

/** By name: what may be refused, as what, and why. */
const REFUSALS = {
  BadRequest: {
    status: 400,
    why: 'The user is inactive, or the request cannot be read.',
    examples: [new DomainError('INACTIVE_USER', 'Inactive user')],
  },
  Unauthorized: {
    status: 401,
    why: 'The credentials are missing or wrong.',
    examples: [
      new DomainError('NOT_AUTHENTICATED', 'Not authenticated'),
      new DomainError('INVALID_TOKEN', 'Could not validate credentials'),
    ],
  },
  Forbidden: { status: 403, why: 'The credentials lack the scope.' },
  NotFound: { status: 404, why: 'There is no such resource.' },
  Conflict: { status: 409, why: 'The resource exists already.' },
  ContentTooLarge: { status: 413, why: 'The body is too large.', examples: [usualError(413)] },
  UnsupportedMediaType: { status: 415, why: 'The content type, charset or encoding is not supported.', examples: [usualError(415)] },
  UnprocessableContent: { status: 422, why: 'The input is not valid.' },
  TooManyRequests: {
    status: 429,
    why: 'Too many logins have failed.',
    examples: [new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], 1)],
  },
  ServiceUnavailable: {
    status: 503,
    why: 'The service is not available at the moment, or took too long.',
    examples: [unavailable(), tooLate()],
  },
  Other: { status: 'default', why: 'Any other error.', examples: [new HttpError(500, 'Internal server error')] },
} as const satisfies Record<string, Documented>;

type Refusal = keyof typeof REFUSALS;

/** Headers of errors, as they are documented. */
const HEADERS = {
  'WWW-Authenticate': { description: 'The scheme of the credentials that are accepted (RFC 9110, 11.6.1).', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds after which to try again.', schema: { type: 'integer', minimum: 1 } },
} as const;

/** What a row may answer, by status: what the row says, and what follows from who may call it and what it reads. */
export function responsesOf(row: Route, components: Components): Json {
  const { status, body } = row.success;
  const headers = headersOf(row);
  const schema = schemaOf(body, 'output', components);
  return {
    [status]: {
      description: `${STATUS_CODES[status]}.`,
      ...(Object.keys(headers).length > 0 && { headers }),
      content: { 'application/json': { schema, example: exampleOf(schema, components) } },
    },
    ...(row.tally !== undefined && { 304: { description: 'The client has this version already.' } }),
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

function refusalsOf({ access, input = {}, refusals = [] }: Route): Refusal[] {
  const body = input.json ?? input.form;
  const hasOwn = (code: DomainError['code']) => refusals.some((error) => error.code === code);
  const applying: [Refusal, boolean][] = [
    ['BadRequest', access !== 'login' || body !== undefined],
    ['Unauthorized', true],
    ['Forbidden', isScoped(access)],
    ['NotFound', hasOwn('NOT_FOUND')],
    ['Conflict', hasOwn('CONFLICT')],
    ['ContentTooLarge', body !== undefined],
    ['UnsupportedMediaType', body !== undefined],
    ['UnprocessableContent', (body ?? input.query ?? input.headers) !== undefined],
    // Failures are counted where credentials can be wrong.
    ['TooManyRequests', hasOwn('INVALID_CREDENTIALS')],
    ['ServiceUnavailable', true],
    ['Other', true],
  ];
  return applying.flatMap(([name, applies]) => (applies ? [name] : []));
}

// What rows refuse alike is described once, among the components. What has examples of its own stands in its row.
function refusal(name: Refusal, row: Route, components: Components): Json {
  const { status, examples = [] }: Documented = REFUSALS[name];
  const own = [...(row.refusals ?? []), ...forbiddenTo(row)].filter((error) => exampleFor(row, error).status === status);
  if (own.length > 0) return response(name, row, own, components);
  // The session router refuses no user that a request names by other credentials than those of a login.
  const isOfSessions = row.errorKey === 'data';
  const named = (isOfSessions ? 'Session' : row.oauth ? 'Token' : '') + name;
  components.responses[named] ??= response(name, row, isOfSessions && name === 'BadRequest' ? [usualError(400)] : examples, components);
  return { $ref: `#/components/responses/${named}` };
}

// The session router has its own words for all but what is wrong with input, and credentials on the request.
function response(name: Refusal, row: Route, errors: readonly (DomainError | HttpError)[], components: Components): Json {
  const isOfSessions = row.errorKey === 'data' && name !== 'UnprocessableContent';
  const shapes = row.oauth
    ? { input: tokenValidationError, error: tokenError, problem: tokenProblem }
    : { input: validationError, error: isOfSessions ? z.union([dataError, detailError]) : detailError, problem };
  const shape = name === 'UnprocessableContent' ? shapes.input : shapes.error;
  const examples = errors.map((error) => exampleFor(row, error));
  const named = (body: 'json' | 'problem') => Object.fromEntries(examples.map((example) => [example.code, { value: example[body] }]));
  const headers = Object.entries(HEADERS).flatMap(([header, described]) => {
    const values = examples.flatMap((example) => example.headers[header] ?? []);
    const [example] = values.map((value) => (described.schema.type === 'integer' ? Number(value) : value));
    return example === undefined ? [] : [[header, { ...described, required: values.length === examples.length, example }]];
  });
  return {
    description: REFUSALS[name].why,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
    content: {
      'application/json': { schema: schemaOf(shape, 'output', components), examples: named('json') },
      'application/problem+json': { schema: schemaOf(shapes.problem, 'output', components), examples: named('problem') },
    },
  };
}

// What HTTP refuses is refused before the form is read, which may say that the client speaks OAuth 2.0.
function exampleFor(row: Route, error: DomainError | HttpError) {
  return errorExample(error, { ...wordingOf(row), isOauth: row.oauth === true && error instanceof DomainError });
}

function forbiddenTo({ access }: Route): DomainError[] {
  return isScoped(access) ? [new DomainError('FORBIDDEN', `This needs the scope ${access}`)] : [];
}

function isScoped(access: Route['access']): access is Scope {
  return typeof access === 'string' && isScope(access);
}
