import { randomUUID } from 'node:crypto';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import { unwrapResolverError } from '@apollo/server/errors';
import { ApolloServerPluginLandingPageDisabled } from '@apollo/server/plugin/disabled';
import { ApolloServerPluginLandingPageLocalDefault } from '@apollo/server/plugin/landingPage/default';
import type { Request, Response } from 'express';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import { answerError, maskedError } from './answers.ts';
import { readGraphqlJson } from './body.ts';
import { CREDENTIAL_HEADERS, identify } from './credentials.ts';
import { graphqlExtensions } from './error-map.ts';
import { visibleError } from './http-error.ts';
import type { Endpoint } from './paths.ts';
import { searchOf } from './request.ts';
import { makeSchema } from './schema.ts';
import { contextOf, type Services } from './services.ts';

/** The GraphQL door, started. */
export interface GraphqlDoor {
  endpoints: Endpoint[];
  stop(): Promise<void>;
}

const WORDING = { errorKey: 'errors', inputPart: 'body' } as const;

/** Starts Apollo Server on our schema; its endpoints are served like every other path. */
export async function openGraphqlDoor(services: Services): Promise<GraphqlDoor> {
  const { explorer } = services.config;
  const apollo = new ApolloServer<Context>({
    schema: await makeSchema(),
    introspection: explorer,
    hideSchemaDetailsFromClientErrors: !explorer,
    includeStacktraceInErrorResponses: false,
    // Registering documents by hash would let anyone fill our memory.
    persistedQueries: false,
    stopOnTerminationSignals: false,
    formatError: (formatted, error) => formatError(services, formatted, error),
    plugins: [
      explorer ? ApolloServerPluginLandingPageLocalDefault({ embed: true, footer: false }) : ApolloServerPluginLandingPageDisabled(),
    ],
  });
  await apollo.start();
  const endpoint = (method: 'GET' | 'POST'): Endpoint => ({
    method,
    path: '/graphql',
    reads: [...CREDENTIAL_HEADERS, 'apollo-require-preflight', 'x-apollo-operation-name'],
    errorKey: 'detail',
    answer: (req, res) => answer(services, apollo, req, res),
  });
  return { endpoints: [endpoint('GET'), endpoint('POST')], stop: () => apollo.stop() };
}

async function answer(services: Services, apollo: ApolloServer<Context>, req: Request, res: Response): Promise<void> {
  const log = services.log.child({ requestId: res.get('X-Request-Id'), row: 'graphql' });
  try {
    const body = req.method === 'POST' ? ((await readGraphqlJson(req, res)) ?? {}) : {};
    const isPage = req.method !== 'POST' && services.config.explorer && req.accepts(['json', 'html']) === 'html';
    const ctx = isPage ? undefined : await authenticated(services, req, res);
    const answered = await apollo.executeHTTPGraphQLRequest({
      // What is asked by HEAD is answered as to GET; Node leaves the body out.
      httpGraphQLRequest: { method: req.method === 'HEAD' ? 'GET' : req.method, headers: headersOf(req), search: searchOf(req), body },
      context: async () => ctx ?? contextOf(services, req, String(res.get('X-Request-Id'))),
    });
    // The page brings its own policy, which lets in what it is made of.
    if (isPage) res.removeHeader('Content-Security-Policy');
    await send(res, answered);
  } catch (error) {
    answerError(req, res, error, log, WORDING);
  }
}

async function authenticated(services: Services, req: Request, res: Response): Promise<Context> {
  const ctx = contextOf(services, req, String(res.get('X-Request-Id')));
  const caller = await identify(ctx, req);
  return caller ? { ...ctx, caller } : ctx;
}

async function send(res: Response, { status = 200, headers, body }: HTTPGraphQLResponse): Promise<void> {
  res.status(status);
  for (const [name, value] of headers) res.set(name, value);
  if (body.kind === 'complete') {
    res.set('Content-Length', String(Buffer.byteLength(body.string))).end(body.string);
    return;
  }
  for await (const chunk of body.asyncIterator) res.write(chunk);
  res.end();
}

function formatError({ log, config }: Services, formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const original = unwrapResolverError(error);
  const seen = original === error ? undefined : visibleError(original);
  if (seen instanceof DomainError) return { ...formatted, message: seen.message, extensions: graphqlExtensions(seen) };
  if (formatted.extensions?.['code'] === 'INTERNAL_SERVER_ERROR') {
    const requestId = randomUUID();
    log.error({ err: original, requestId, path: formatted.path }, 'a resolver failed');
    return { ...formatted, ...maskedError(requestId) };
  }
  return namedVariable(formatted, error, config.explorer);
}

// What graphql-js says of a variable repeats its value. What is told is where the mistake is, and what it is.
function namedVariable(formatted: GraphQLFormattedError, error: unknown, isExplorer: boolean): GraphQLFormattedError {
  const cause = error instanceof GraphQLError ? error.originalError?.message : undefined;
  const [, variable] = /^Variable "\$(\w+)" got invalid value /.exec(formatted.message) ?? [];
  if (cause === undefined || variable === undefined || !formatted.message.endsWith(`; ${cause}`)) return formatted;
  // In the value, which comes before, every quotation mark is escaped.
  const [, path] = / at "\w+((?:\.\w+|\[\d+\])+)"$/.exec(formatted.message.slice(0, -cause.length - 2)) ?? [];
  const field = path === undefined ? variable : path.slice(1).replace(/\[(\d+)\]/g, '.$1');
  const message = withoutHint(cause, isExplorer)
    .replace(/^Expected type "\w+!?"\. /, '')
    .replace(/ cannot represent (a )?(\S+ )*value: .*$/s, ' cannot represent this value');
  return { ...formatted, message: `${field}: ${message}`, extensions: { ...formatted.extensions, fields: [{ field, message }] } };
}

// Apollo Server leaves such hints out of what validation says, but not out of what is said of variables.
function withoutHint(message: string, isExplorer: boolean): string {
  return isExplorer ? message : message.replace(/ Did you mean .*\?$/s, '');
}

function headersOf(req: Request): HeaderMap {
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}
