import { z } from 'zod';
import type { Route } from '../../api/route.ts';
import { DomainError } from '../../core/errors.ts';
import { isScope } from '../../core/scopes.ts';
import { errorForStatus, timeoutError, unavailableError } from '../../http/http-error.ts';
import { errorResponse, INTERNAL_ERROR, type ErrorResponse } from '../../http/responses.ts';
import { errorFormatOf } from '../router.ts';
import type { Components, Json } from './schema.ts';

const described = (schema: z.ZodType, description: string, ...examples: unknown[]) =>
  schema.meta({ description, ...(examples.length > 0 && { examples }) });
const text = (description: string, example: string) => described(z.string(), description, example);
const object = (id: string, description: string, members: z.ZodRawShape) =>
  z.object(members).meta({ id, description });

const KIND = text('Machine-readable kind of the error.', 'missing');
const MESSAGE = text('Error message.', 'Field required');
const FIELD = text('Name of the field.', 'name');
const PATH = z.array(z.union([z.string(), z.int().min(0)]));
const LOCATION = described(PATH, 'Location of the invalid value.', ['body', 'name']);
const INPUT_ERRORS = z.array(z.object({ type: KIND, loc: LOCATION, msg: MESSAGE }));
const PROBLEM_ERRORS = z.array(z.object({ field: FIELD, type: KIND, message: MESSAGE }));

const DETAIL = { detail: text('Error message.', 'Not authenticated') };
const INPUT = { detail: described(INPUT_ERRORS, 'One entry per error.') };
const PROBLEM = {
  type: text('Always about:blank.', 'about:blank'),
  title: text('Reason phrase of the status.', 'Unauthorized'),
  status: described(z.int().min(400).max(599), 'HTTP status.', 401),
  ...DETAIL,
  code: text('Machine-readable error code.', 'NOT_AUTHENTICATED'),
  errors: described(PROBLEM_ERRORS.optional(), 'One entry per input error.'),
};
const SESSION = { data: text('Error message.', 'Incorrect login and/or password') };
const IF_OAUTH = 'if grant_type was sent.';
const OAUTH_MESSAGE = text(`Error message, ${IF_OAUTH}`, 'Incorrect username or password');
/** Members that RFC 6749, 5.2, adds to errors of the token endpoints. */
const OAUTH = {
  error: text(`Error code of RFC 6749, ${IF_OAUTH}`, 'invalid_grant').optional(),
  error_description: OAUTH_MESSAGE.optional(),
};
const OF_TOKEN = `of /token and /login, with the members of RFC 6749 ${IF_OAUTH}`;
const OF_PROBLEM =
  'An error in the format of RFC 9457, for clients that accept application/problem+json.';

const COMMON = {
  error: object('Error', 'An error.', DETAIL),
  input: object('ValidationError', 'Invalid input, field by field.', INPUT),
  problem: object('Problem', OF_PROBLEM, PROBLEM),
};
const SESSION_ERROR = object('SessionError', 'An error of the session router.', SESSION);

/** Schemas of errors, invalid input and problems (RFC 9457), by the router that sends them. */
const SCHEMAS = {
  '': COMMON,
  // Errors about the credentials of a request have the format of the other routers.
  Session: { ...COMMON, error: z.union([SESSION_ERROR, COMMON.error]) },
  Token: {
    error: object('TokenError', `An error ${OF_TOKEN}`, { ...DETAIL, ...OAUTH }),
    input: object('TokenValidationError', `Invalid input ${OF_TOKEN}`, { ...INPUT, ...OAUTH }),
    problem: object('TokenProblem', `A problem ${OF_TOKEN}`, { ...PROBLEM, ...OAUTH }),
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

/**
 * Returns the error responses of an endpoint by status. Adds those without errors of its own to the
 * components, where endpoints share them.
 */
export function errorResponsesOf(route: Route, components: Components): Json {
  const { access, errors = [], errorKey, oauth } = route;
  const router = errorKey === 'data' ? 'Session' : oauth ? 'Token' : '';
  const { error, input, problem } = SCHEMAS[router];
  const isScoped = typeof access === 'string' && isScope(access);
  const forbidden = isScoped ? [new DomainError('FORBIDDEN', `Missing scope: ${access}`)] : [];
  const own = examplesByStatus(route, [...errors, ...forbidden]);
  const all = new Map([...examplesByStatus(route, sharedErrors(route)), ...own]);
  const responses = Array.from(all, ([status, examples]) => {
    const [name, description] = RESPONSES[status];
    const headers = headersOf(examples);
    const contentOf = (schema: z.ZodType, body: 'json' | 'problem') => {
      const named = examples.map((example) => [example.code, example[body]]);
      return components.contentOf(schema, 'output', Object.fromEntries(named) as Json);
    };
    const response = {
      description,
      ...(headers.length > 0 && { headers: Object.fromEntries(headers) as Json }),
      content: {
        'application/json': contentOf(status === 422 ? input : error, 'json'),
        'application/problem+json': contentOf(problem, 'problem'),
      },
    };
    const key = status === 500 ? 'default' : status;
    if (own.has(status)) return [key, response];
    components.responses[router + name] ??= response;
    return [key, { $ref: `#/components/responses/${router}${name}` }];
  });
  return Object.fromEntries(responses) as Json;
}

function sharedErrors({ access, input, errors = [], errorKey }: Route) {
  const hasBody = (input?.json ?? input?.form) !== undefined;
  // The session router rejects inactive users only at login.
  const badRequest =
    errorKey === 'data' ? errorForStatus(400) : new DomainError('INACTIVE_USER', 'Inactive user');
  // Failures are counted where credentials can be wrong.
  const isLimited = errors.some(({ code }) => code === 'INVALID_CREDENTIALS');
  return [
    (access !== 'login' || hasBody) && badRequest,
    new DomainError('NOT_AUTHENTICATED', 'Not authenticated'),
    new DomainError('INVALID_TOKEN', 'Could not validate credentials'),
    hasBody && errorForStatus(413),
    hasBody && errorForStatus(415),
    isLimited && new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], 1),
    unavailableError(),
    timeoutError(),
    INTERNAL_ERROR,
  ].filter((error) => error !== false);
}

function examplesByStatus(route: Route, errors: Parameters<typeof errorResponse>[0][]) {
  const examples = errors.map((error) => {
    // HTTP errors occur before the form is read, which shows whether the client uses OAuth 2.0.
    const isOauth = route.oauth === true && error instanceof DomainError;
    return errorResponse(error, { ...errorFormatOf(route), isOauth });
  });
  return Map.groupBy(examples, ({ status }) => status as keyof typeof RESPONSES);
}

function headersOf(examples: readonly ErrorResponse[]) {
  return Object.entries(HEADERS).flatMap(([name, [description, schema]]) => {
    const values = examples.flatMap(({ headers }) => headers[name] ?? []);
    const required = values.length === examples.length;
    const example = schema.type === 'integer' ? Number(values[0]) : values[0];
    return values.length > 0 ? [[name, { description, schema, required, example }]] : [];
  });
}
