import { z } from 'zod';
import type { Route } from '../../api/route.ts';
import { DomainError } from '../../core/errors.ts';
import { isScope } from '../../core/scopes.ts';
import {
  errorForStatus,
  HttpError,
  timeoutError,
  unavailableError,
} from '../../http/http-error.ts';
import { errorExample } from '../../http/responses.ts';
import { errorFormatOf } from '../router.ts';
import { namedExamples, schemaOf, type Components, type Json } from './schema.ts';

const text = (description: string, example: string) =>
  z.string().meta({ description, examples: [example] });
const kind = text('Machine-readable kind of the error.', 'missing');
const message = text('Error message.', 'Field required');
const location = z
  .array(z.union([z.string(), z.int().min(0)]))
  .meta({ description: 'Location of the invalid value.', examples: [['body', 'name']] });

const detailError = z
  .object({ detail: text('Error message.', 'Not authenticated') })
  .meta({ id: 'Error', description: 'An error.' });

const dataError = z
  .object({ data: text('Error message.', 'Incorrect login and/or password') })
  .meta({ id: 'SessionError', description: 'An error of the session router.' });

const inputError = z
  .object({
    detail: z
      .array(z.object({ type: kind, loc: location, msg: message }))
      .meta({ description: 'One entry per error.' }),
  })
  .meta({ id: 'ValidationError', description: 'Invalid input, field by field.' });

const problem = z
  .object({
    type: text('Always about:blank.', 'about:blank'),
    title: text('Reason phrase of the status.', 'Unauthorized'),
    status: z
      .int()
      .min(400)
      .max(599)
      .meta({ description: 'HTTP status.', examples: [401] }),
    detail: text('Error message.', 'Not authenticated'),
    code: text('Machine-readable error code.', 'NOT_AUTHENTICATED'),
    errors: z
      .array(z.object({ field: text('Name of the field.', 'name'), type: kind, message }))
      .optional()
      .meta({ description: 'One entry per input error.' }),
  })
  .meta({
    id: 'Problem',
    description:
      'An error in the format of RFC 9457, for clients that accept application/problem+json.',
  });

/** Adds the members of RFC 6749, 5.2, to an error of the token endpoints. */
const withOauth = (error: z.ZodObject, id: string, subject: string) =>
  error
    .extend({
      error: text('Error code of RFC 6749, if grant_type was sent.', 'invalid_grant').optional(),
      error_description: text(
        'Error message, if grant_type was sent.',
        'Incorrect username or password',
      ).optional(),
    })
    .meta({
      id,
      description: `${subject} of /token and /login, with the members of RFC 6749 if grant_type was sent.`,
    });

/** Schemas of errors, invalid input and problems (RFC 9457), by the router that sends them. */
const SCHEMAS = {
  '': { error: detailError, input: inputError, problem },
  // Errors about the credentials of a request have the format of the other routers.
  Session: { error: z.union([dataError, detailError]), input: inputError, problem },
  Token: {
    error: withOauth(detailError, 'TokenError', 'An error'),
    input: withOauth(inputError, 'TokenValidationError', 'Invalid input'),
    problem: withOauth(problem, 'TokenProblem', 'A problem'),
  },
};

/** Names and descriptions of error responses by status; 500 stands for any other status. */
const RESPONSES = {
  400: ['BadRequest', 'The user is inactive, or the request is malformed.'],
  401: ['Unauthorized', 'The credentials are missing or invalid.'],
  403: ['Forbidden', 'The credentials lack the scope.'],
  404: ['NotFound', 'There is no such resource.'],
  409: ['Conflict', 'The resource already exists.'],
  413: ['ContentTooLarge', 'The body is too large.'],
  415: ['UnsupportedMediaType', 'The content type, charset or encoding is not supported.'],
  422: ['UnprocessableContent', 'The input is invalid.'],
  429: ['TooManyRequests', 'Too many failed logins.'],
  500: ['Other', 'Any other error.'],
  503: ['ServiceUnavailable', 'The service is unavailable or timed out.'],
} as const;

/** Descriptions and schemas of the headers of errors. */
const HEADERS = {
  'WWW-Authenticate': ['Accepted authentication scheme (RFC 9110, 11.6.1).', { type: 'string' }],
  'Retry-After': ['Seconds to wait before a retry.', { type: 'integer', minimum: 1 }],
} as const;

type Status = keyof typeof RESPONSES;
type Examples = ReturnType<typeof errorExample>[];

/**
 * Returns the error responses of an endpoint by status. Adds those without errors of its own to the
 * components, where endpoints share them.
 */
export function errorResponsesOf(route: Route, components: Components): Json {
  const { access, errors = [], errorKey, oauth } = route;
  const router = errorKey === 'data' ? 'Session' : oauth ? 'Token' : '';
  const isScoped = typeof access === 'string' && isScope(access);
  const forbidden = isScoped ? [new DomainError('FORBIDDEN', `Missing scope: ${access}`)] : [];
  const own = examplesByStatus(route, [...errors, ...forbidden]);
  const responses: Json = {};
  for (const [status, examples] of new Map([
    ...examplesByStatus(route, generalErrors(route)),
    ...own,
  ])) {
    const response = responseOf(status, examples, SCHEMAS[router], components);
    const name = router + RESPONSES[status][0];
    if (!own.has(status)) components.responses[name] ??= response;
    responses[status === 500 ? 'default' : status] = own.has(status)
      ? response
      : { $ref: `#/components/responses/${name}` };
  }
  return responses;
}

function generalErrors({ access, input, errors = [], errorKey }: Route) {
  const hasBody = (input?.json ?? input?.form) !== undefined;
  // The session router rejects inactive users only at login.
  const badRequest =
    errorKey === 'data' ? errorForStatus(400) : new DomainError('INACTIVE_USER', 'Inactive user');
  // Failures are counted where credentials can be wrong.
  const isLimited = errors.some(({ code }) => code === 'INVALID_CREDENTIALS');
  return [
    ...(access === 'login' && !hasBody ? [] : [badRequest]),
    new DomainError('NOT_AUTHENTICATED', 'Not authenticated'),
    new DomainError('INVALID_TOKEN', 'Could not validate credentials'),
    ...(hasBody ? [errorForStatus(413), errorForStatus(415)] : []),
    ...(isLimited
      ? [new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], 1)]
      : []),
    unavailableError(),
    timeoutError(),
    new HttpError(500, 'Internal server error'),
  ];
}

function examplesByStatus(route: Route, errors: (DomainError | HttpError)[]) {
  const examples = errors.map((error) => {
    // HTTP errors occur before the form is read, which shows whether the client uses OAuth 2.0.
    const isOauth = route.oauth === true && error instanceof DomainError;
    return errorExample(error, { ...errorFormatOf(route), isOauth });
  });
  return Map.groupBy(examples, ({ status }) => status as Status);
}

function responseOf(
  status: Status,
  examples: Examples,
  schemas: (typeof SCHEMAS)[keyof typeof SCHEMAS],
  components: Components,
): Json {
  const content = (schema: z.ZodType, body: 'json' | 'problem') => ({
    schema: schemaOf(schema, 'output', components),
    examples: namedExamples(examples.map((example) => [example.code, example[body]])),
  });
  const headers = Object.entries(HEADERS).flatMap(([name, [description, schema]]) => {
    const values = examples.flatMap((example) => example.headers[name] ?? []);
    const required = values.length === examples.length;
    const example = name === 'Retry-After' ? Number(values[0]) : values[0];
    return values.length > 0 ? [[name, { description, schema, required, example }]] : [];
  });
  return {
    description: RESPONSES[status][1],
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
    content: {
      'application/json': content(status === 422 ? schemas.input : schemas.error, 'json'),
      'application/problem+json': content(schemas.problem, 'problem'),
    },
  };
}
