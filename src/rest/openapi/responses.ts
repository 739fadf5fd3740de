import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { DomainError } from '../../core/errors.ts';
import type { Route } from '../../api/route.ts';
import { isScope, type Scope } from '../../core/scopes.ts';
import { errorExample } from '../../http/responses.ts';
import {
  HttpError,
  timeoutError,
  unavailableError,
  errorForStatus,
} from '../../http/http-error.ts';
import { errorFormatOf } from '../endpoint.ts';
import {
  dataError,
  detailError,
  problem,
  tokenError,
  tokenProblem,
  tokenValidationError,
  validationError,
} from './errors.ts';
import { exampleOf, schemaOf, type Components, type Json } from './json-schema.ts';

interface ErrorDescription {
  status: number | 'default';
  description: string;
  /** Examples for endpoints without their own. */
  examples?: readonly (DomainError | HttpError)[];
}

/** Error responses by name. */
const ERROR_RESPONSES = {
  BadRequest: {
    status: 400,
    description: 'The user is inactive, or the request is malformed.',
    examples: [new DomainError('INACTIVE_USER', 'Inactive user')],
  },
  Unauthorized: {
    status: 401,
    description: 'The credentials are missing or invalid.',
    examples: [
      new DomainError('NOT_AUTHENTICATED', 'Not authenticated'),
      new DomainError('INVALID_TOKEN', 'Could not validate credentials'),
    ],
  },
  Forbidden: { status: 403, description: 'The credentials lack the scope.' },
  NotFound: { status: 404, description: 'There is no such resource.' },
  Conflict: { status: 409, description: 'The resource already exists.' },
  ContentTooLarge: {
    status: 413,
    description: 'The body is too large.',
    examples: [errorForStatus(413)],
  },
  UnsupportedMediaType: {
    status: 415,
    description: 'The content type, charset or encoding is not supported.',
    examples: [errorForStatus(415)],
  },
  UnprocessableContent: { status: 422, description: 'The input is invalid.' },
  TooManyRequests: {
    status: 429,
    description: 'Too many failed logins.',
    examples: [new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], 1)],
  },
  ServiceUnavailable: {
    status: 503,
    description: 'The service is unavailable or timed out.',
    examples: [unavailableError(), timeoutError()],
  },
  Other: {
    status: 'default',
    description: 'Any other error.',
    examples: [new HttpError(500, 'Internal server error')],
  },
} as const satisfies Record<string, ErrorDescription>;

type ErrorName = keyof typeof ERROR_RESPONSES;

/** Documented headers of errors. */
const HEADERS = {
  'WWW-Authenticate': {
    description: 'Accepted authentication scheme (RFC 9110, 11.6.1).',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds to wait before a retry.',
    schema: { type: 'integer', minimum: 1 },
  },
} as const;

/** Returns the responses of an endpoint by status, from its definition, access and input. */
export function responsesOf(endpoint: Route, components: Components): Json {
  const { status, body } = endpoint.success;
  const headers = headersOf(endpoint);
  const schema = schemaOf(body, 'output', components);
  return {
    [status]: {
      description: `${STATUS_CODES[status]}.`,
      ...(Object.keys(headers).length > 0 && { headers }),
      content: { 'application/json': { schema, example: exampleOf(schema, components) } },
    },
    ...(endpoint.rowCounts !== undefined && {
      304: { description: 'The client has the current version.' },
    }),
    ...Object.fromEntries(
      errorsOf(endpoint).map((name) => [
        ERROR_RESPONSES[name].status,
        errorResponse(name, endpoint, components),
      ]),
    ),
  };
}

function headersOf({ success, rowCounts }: Route): Json {
  const documented = {
    ...success.documentedHeaders,
    ...(rowCounts !== undefined && {
      ETag: 'Entity tag, if the request had no credentials.',
      'Cache-Control': 'Cacheability of the response (RFC 9111, 5.2.2).',
    }),
  };
  return Object.fromEntries(
    Object.entries(documented).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  );
}

function errorsOf({ access, input = {}, errors: refusals = [] }: Route): ErrorName[] {
  const body = input.json ?? input.form;
  const hasOwn = (code: DomainError['code']) => refusals.some((error) => error.code === code);
  const applying: [ErrorName, boolean][] = [
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

// Describes an error response once, in the components, unless the endpoint has examples of its own.
function errorResponse(name: ErrorName, endpoint: Route, components: Components): Json {
  const { status, examples = [] }: ErrorDescription = ERROR_RESPONSES[name];
  const own = [...(endpoint.errors ?? []), ...scopeErrors(endpoint)].filter(
    (error) => exampleFor(endpoint, error).status === status,
  );
  if (own.length > 0) return response(name, endpoint, own, components);
  // The session router rejects inactive users only at login.
  const isSessionRouter = endpoint.errorKey === 'data';
  const named = (isSessionRouter ? 'Session' : endpoint.oauth ? 'Token' : '') + name;
  components.responses[named] ??= response(
    name,
    endpoint,
    isSessionRouter && name === 'BadRequest' ? [errorForStatus(400)] : examples,
    components,
  );
  return { $ref: `#/components/responses/${named}` };
}

// The session router has its own error format, except for invalid input and request credentials.
function response(
  name: ErrorName,
  endpoint: Route,
  errors: readonly (DomainError | HttpError)[],
  components: Components,
): Json {
  const isSessionRouter = endpoint.errorKey === 'data' && name !== 'UnprocessableContent';
  const shapes = endpoint.oauth
    ? { input: tokenValidationError, error: tokenError, problem: tokenProblem }
    : {
        input: validationError,
        error: isSessionRouter ? z.union([dataError, detailError]) : detailError,
        problem,
      };
  const shape = name === 'UnprocessableContent' ? shapes.input : shapes.error;
  const examples = errors.map((error) => exampleFor(endpoint, error));
  const named = (body: 'json' | 'problem') =>
    Object.fromEntries(examples.map((example) => [example.code, { value: example[body] }]));
  const headers = Object.entries(HEADERS).flatMap(([header, described]) => {
    const values = examples.flatMap((example) => example.headers[header] ?? []);
    const [example] = values.map((value) =>
      described.schema.type === 'integer' ? Number(value) : value,
    );
    return example === undefined
      ? []
      : [[header, { ...described, required: values.length === examples.length, example }]];
  });
  return {
    description: ERROR_RESPONSES[name].description,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
    content: {
      'application/json': {
        schema: schemaOf(shape, 'output', components),
        examples: named('json'),
      },
      'application/problem+json': {
        schema: schemaOf(shapes.problem, 'output', components),
        examples: named('problem'),
      },
    },
  };
}

// HTTP errors occur before the form is read, which shows whether the client uses OAuth 2.0.
function exampleFor(endpoint: Route, error: DomainError | HttpError) {
  return errorExample(error, {
    ...errorFormatOf(endpoint),
    isOauth: endpoint.oauth === true && error instanceof DomainError,
  });
}

function scopeErrors({ access }: Route): DomainError[] {
  return isScoped(access) ? [new DomainError('FORBIDDEN', `Missing scope: ${access}`)] : [];
}

function isScoped(access: Route['access']): access is Scope {
  return typeof access === 'string' && isScope(access);
}
