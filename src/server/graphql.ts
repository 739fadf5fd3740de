import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import { unwrapResolverError } from '@apollo/server/errors';
import { ApolloServerPluginCacheControlDisabled, ApolloServerPluginLandingPageDisabled } from '@apollo/server/plugin/disabled';
import { ApolloServerPluginLandingPageLocalDefault } from '@apollo/server/plugin/landingPage/default';
import accepts from 'accepts';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import type { Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import { answerError, JSON_TYPE, maskedError } from './answers.ts';
import { parseJson, readGraphqlText } from './body.ts';
import { CREDENTIAL_HEADERS, identify, isAnonymous } from './credentials.ts';
import { graphqlExtensions } from './error-map.ts';
import type { Exchange } from './exchange.ts';
import { visibleError } from './http-error.ts';
import type { Endpoint } from './paths.ts';
import { searchOf } from './request.ts';
import { makeSchema } from './schema.ts';
import { contextOf, type Services } from './services.ts';
import type { GraphqlShortcuts } from './shortcuts/graphql.ts';
import type { Shortcuts } from './shortcuts/shortcuts.ts';

/** The GraphQL door, started. */
export interface GraphqlDoor {
  endpoints: Endpoint[];
  stop(): Promise<void>;
}

interface Door {
  apollo: ApolloServer<Context>;
  shortcuts: GraphqlShortcuts;
}

const WORDING = { row: 'graphql', errorKey: 'errors', inputPart: 'body' } as const;

/** Starts Apollo Server on our schema; its endpoints are served like every other path. */
export async function openGraphqlDoor(services: Services, all: Shortcuts): Promise<GraphqlDoor> {
  const { explorer } = services.config;
  const schema = await makeSchema();
  const shortcuts = all.graphql(schema);
  const apollo = new ApolloServer<Context>({
    schema,
    introspection: explorer,
    hideSchemaDetailsFromClientErrors: !explorer,
    includeStacktraceInErrorResponses: false,
    // Registering documents by hash would let anyone fill our memory.
    persistedQueries: false,
    stopOnTerminationSignals: false,
    formatError: (formatted, error) => formatError(services, formatted, error),
    plugins: [
      shortcuts.plugin,
      // It looks at every field to find out how long an answer may be kept; ours may not be kept at all.
      ApolloServerPluginCacheControlDisabled(),
      explorer ? ApolloServerPluginLandingPageLocalDefault({ embed: true, footer: false }) : ApolloServerPluginLandingPageDisabled(),
    ],
  });
  await apollo.start();
  const endpoint = (method: 'GET' | 'POST'): Endpoint => ({
    method,
    path: '/graphql',
    reads: [...CREDENTIAL_HEADERS, 'apollo-require-preflight', 'x-apollo-operation-name'],
    errorKey: 'detail',
    answer: (exchange) => answer(services, { apollo, shortcuts }, exchange),
  });
  return { endpoints: [endpoint('GET'), endpoint('POST')], stop: () => apollo.stop() };
}

async function answer(services: Services, { apollo, shortcuts }: Door, exchange: Exchange): Promise<void> {
  const { req } = exchange;
  try {
    const text = req.method === 'POST' ? await readGraphqlText(exchange) : undefined;
    const ctx = contextOf(services, exchange);
    const shared = text === undefined ? undefined : shortcuts.shared(ctx, req, text);
    if (shared !== undefined) return sendPlain(exchange, shared);
    const body = text === undefined ? {} : parseJson(text);
    const isPage = req.method !== 'POST' && services.config.explorer && accepts(req).type(['json', 'html']) === 'html';
    if (!isPage && !isAnonymous(req)) await identify(ctx, req);
    const planned = text === undefined ? undefined : await shortcuts.planned(ctx, req, text, body);
    if (planned !== undefined) return sendPlain(exchange, planned);
    const answered = await apollo.executeHTTPGraphQLRequest({
      // What is asked by HEAD is answered as to GET; Node leaves the body out.
      httpGraphQLRequest: {
        method: req.method === 'HEAD' ? 'GET' : (req.method ?? ''),
        headers: headersOf(req),
        search: searchOf(req),
        body,
      },
      context: async () => ctx,
    });
    // Where nothing says for how long an answer may be kept, someone would guess.
    exchange.set({ 'Cache-Control': 'no-store' });
    // The page brings its own policy, which lets in what it is made of.
    if (isPage) exchange.unset('Content-Security-Policy');
    await send(exchange, answered);
  } catch (error) {
    answerError(exchange, error, services.log, WORDING);
  }
}

// As Apollo Server answers what goes well.
function sendPlain(exchange: Exchange, body: string): void {
  exchange.set({ 'Cache-Control': 'no-store' });
  exchange.send(200, body, JSON_TYPE);
}

async function send(exchange: Exchange, { status = 200, headers, body }: HTTPGraphQLResponse): Promise<void> {
  const { 'content-type': type = JSON_TYPE, ...rest } = Object.fromEntries(headers);
  exchange.set(Object.fromEntries(Object.entries(rest).map(([name, value]) => [titled(name), value])));
  if (body.kind === 'complete') {
    exchange.send(status, body.string, type);
    return;
  }
  exchange.set({ 'Content-Type': type });
  exchange.start(status);
  for await (const chunk of body.asyncIterator) exchange.res.write(chunk);
  exchange.res.end();
}

// Apollo Server writes names in lower case; a header is to be replaced whatever its case.
function titled(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
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

function headersOf(req: IncomingMessage): HeaderMap {
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}
