import type { IncomingMessage } from 'node:http';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from '@apollo/server/plugin/disabled';
import accepts from 'accepts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { exceedsBytes } from '../core/text.ts';
import { JSON_TYPE } from '../http/responses.ts';
import { parseJson, readGraphqlText } from '../http/body.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { answerFromClientCache, codedTagOf, tagOf, VARY_BY_TYPE } from '../http/http-cache.ts';
import {
  acceptedCoding,
  codingFor,
  mayBeCompressed,
  sendCompressed,
  VARY_BY_CODING,
  type Coding,
} from '../http/compression.ts';
import { withTimeout } from '../http/request-timeout.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Endpoint } from '../http/paths.ts';
import { queryStringOf, canonicalHeaderName } from '../http/request-headers.ts';
import { makeSchema } from './schema.ts';
import { contextOf, type Dependencies } from '../http/dependencies.ts';
import { operationPlugin } from './operation.plugin.ts';
import { Operations } from '../telemetry/operations.ts';
import type { CompiledEndpoint, CompiledResponse } from './compiled/compiled-endpoint.ts';
import type { FastPaths } from './compiled/fast-paths.ts';
import { costPlugin } from './cost.plugin.ts';
import { statementsPlugin, wantsStatements } from './statements.plugin.ts';
import { countStatements } from '../telemetry/statement-count.ts';
import { ApolloDocuments } from './apollo-documents.ts';
import { Documents } from './documents.ts';
import { formatError } from './errors.ts';
import { sendEventStream, acceptsEventStream } from './subscriptions/sse.ts';
import { idempotencyPlugin } from './idempotency.plugin.ts';
import { httpStatusPlugin } from './http-status.plugin.ts';
import { MAX_VARIABLE_ERRORS } from './limits.ts';
import { ERROR_FORMAT, type SubscriptionConnections } from './subscriptions/connections.ts';
import { SubscriptionRegistry } from './subscriptions/registry.ts';
import { Subscriptions } from './subscriptions/subscription.ts';
import { withoutEmptyMembers, withoutEmptyParameters } from './request-parameters.ts';
import { inputErrorsPlugin } from './input-errors.plugin.ts';
import { subscriptionsPlugin } from './subscriptions/subscriptions.plugin.ts';
import { unavailablePlugin } from './unavailable.plugin.ts';
import { trustedDocuments, type TrustedDocuments } from './trusted-documents.ts';

const NO_STORE = { 'Cache-Control': 'no-store' };
const NO_STORE_BY_CODING = { ...NO_STORE, ...VARY_BY_CODING };

/** The running GraphQL API. */
export interface GraphqlApi {
  endpoints: Endpoint[];
  connections: SubscriptionConnections;
  stop(): Promise<void>;
}

interface EndpointState {
  apollo: ApolloServer<Context>;
  apolloDocuments: ApolloDocuments;
  compiledEndpoint: CompiledEndpoint;
  /** Undefined if any document may run. */
  trusted: TrustedDocuments | undefined;
  connections: SubscriptionConnections;
  answerPage: Endpoint['handle'] | undefined;
}

/** Starts Apollo Server. Its endpoints send `answerPage`, if given, to browsers. */
export async function openGraphqlApi(
  dependencies: Dependencies,
  fastPaths: FastPaths,
  answerPage: Endpoint['handle'] | undefined,
): Promise<GraphqlApi> {
  const { config } = dependencies;
  const trusted = trustedDocuments(config);
  const schema = await makeSchema();
  const operations = new Operations(trusted?.operationNames);
  const compiledEndpoint = fastPaths.graphql(schema, operations);
  const documents = new Documents(schema, dependencies);
  const apolloDocuments = new ApolloDocuments(documents);
  const apollo = new ApolloServer<Context>({
    schema,
    // formatError removes schema hints from all errors.
    hideSchemaDetailsFromClientErrors: false,
    includeStacktraceInErrorResponses: false,
    // There are no cookies, so requests from pages of other sites carry no credentials.
    csrfPrevention: false,
    // Automatic persisted queries would allow any client to fill the memory.
    persistedQueries: false,
    documentStore: null,
    stopOnTerminationSignals: false,
    executionOptions: { maxCoercionErrors: MAX_VARIABLE_ERRORS },
    formatError: (formatted, error) => formatError(dependencies, formatted, error),
    plugins: [
      apolloDocuments.plugin,
      subscriptionsPlugin,
      costPlugin(config.graphqlMaxCost),
      statementsPlugin,
      idempotencyPlugin(dependencies),
      httpStatusPlugin,
      unavailablePlugin,
      inputErrorsPlugin,
      compiledEndpoint.plugin,
      operationPlugin(operations),
      // The plugin visits every field to compute a cache lifetime. Our responses are not stored.
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginLandingPageDisabled(),
    ],
  });
  await apollo.start();
  const connections: SubscriptionConnections = {
    dependencies,
    registry: new SubscriptionRegistry(dependencies),
    subscriptions: new Subscriptions(schema, documents, dependencies, operations),
    trusted,
  };
  const endpoint = (method: 'GET' | 'POST'): Endpoint => ({
    method,
    path: '/graphql',
    api: 'graphql',
    errorKey: ERROR_FORMAT.errorKey,
    handle: (exchange) =>
      answer(
        dependencies,
        { apollo, apolloDocuments, compiledEndpoint, trusted, connections, answerPage },
        exchange,
      ),
  });
  return {
    endpoints: [endpoint('GET'), endpoint('POST')],
    connections,
    stop: () => apollo.stop(),
  };
}

async function answer(
  dependencies: Dependencies,
  { apollo, apolloDocuments, compiledEndpoint, trusted, connections, answerPage }: EndpointState,
  exchange: Exchange,
): Promise<void> {
  const { req } = exchange;
  const { config } = dependencies;
  if (req.method !== 'HEAD' && acceptsEventStream(req))
    return withTimeout(dependencies, exchange, ERROR_FORMAT, () =>
      sendEventStream(connections, exchange),
    );
  if (answerPage && req.method !== 'POST' && accepts(req).type(['json', 'html']) === 'html')
    return answerPage(exchange);
  await withTimeout(dependencies, exchange, ERROR_FORMAT, async () => {
    const text = req.method === 'POST' ? await readGraphqlText(exchange) : undefined;
    const ctx = contextOf(dependencies, exchange);
    const cached = text === undefined ? undefined : compiledEndpoint.cached(ctx, req, text);
    if (cached) return sendPlain(dependencies, exchange, cached);
    const parsed = text === undefined ? {} : withoutEmptyMembers(parseJson(text));
    // A cached response passed this check before, with the same text.
    const body = trusted ? trusted.readBody(ctx, parsed) : parsed;
    const sent = req.method === 'POST' ? '' : withoutEmptyParameters(queryStringOf(req));
    const search = trusted && req.method !== 'POST' ? trusted.readSearch(ctx, sent) : sent;
    if (!isAnonymous(req)) await identify(ctx, exchange);
    const compiled =
      text === undefined ? undefined : await compiledEndpoint.compiled(ctx, req, text, body);
    if (compiled) return sendPlain(dependencies, exchange, compiled);
    const respond = () =>
      apolloDocuments.respond(exchange, documentIn(body), () =>
        apollo.executeHTTPGraphQLRequest({
          // HEAD is processed as GET; Node omits the body.
          httpGraphQLRequest: {
            method: req.method === 'HEAD' ? 'GET' : (req.method ?? ''),
            headers: headersOf(req),
            search,
            body,
          },
          context: async () => ctx,
        }),
      );
    const response =
      config.graphqlExplorer && wantsStatements(body)
        ? await countStatements(respond)
        : await respond();
    // Without this header, caches choose a lifetime heuristically.
    exchange.set(NO_STORE);
    const publicBody = publicBodyOf(req, response);
    const coding = codingOf(dependencies, exchange, response);
    if (
      publicBody !== undefined &&
      answerFromClientCache(exchange, config, codedTagOf(tagOf(publicBody), coding), VARY_BY_TYPE)
    )
      return;
    await send(dependencies, exchange, response, coding);
  });
}

function documentIn(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'query' in body ? body.query : undefined;
}

// Returns the body of a GET response that is the same for every anonymous client. Errors may be
// transient and are excluded.
function publicBodyOf(
  req: IncomingMessage,
  { status = 200, body }: HTTPGraphQLResponse,
): string | undefined {
  if (req.method === 'POST' || status !== 200 || !isAnonymous(req) || body.kind !== 'complete')
    return undefined;
  return body.string.startsWith('{"errors"') ? undefined : body.string;
}

// Only responses of mutations contain credentials. Compressing a credential together with text that
// others chose reveals the credential by the length, so only queries are compressed.
function codingOf(
  { config }: Dependencies,
  exchange: Exchange,
  { body }: HTTPGraphQLResponse,
): Coding | undefined {
  if (exchange.record.operation?.type !== 'query' || body.kind !== 'complete') return undefined;
  return codingFor(exchange, config, body.string);
}

// Sends a success response as Apollo Server does.
function sendPlain(
  { config }: Dependencies,
  exchange: Exchange,
  response: CompiledResponse,
): Promise<void> | undefined {
  const { body, operation } = response;
  if (operation) exchange.record.operation = operation;
  rejectLong(body, config.graphqlMaxResponseBytes);
  const isLong = mayBeCompressed(config, body);
  exchange.set(isLong ? NO_STORE_BY_CODING : NO_STORE);
  return sendCompressed(
    exchange,
    isLong ? acceptedCoding(exchange.req) : undefined,
    200,
    response,
    JSON_TYPE,
  );
}

// The cost bounds the number of objects of a response, not the length of their texts.
function rejectLong(body: string, max: number): void {
  if (exceedsBytes(body, max))
    throw new DomainError('QUERY_TOO_COMPLEX', `The response has more than ${max} bytes`);
}

async function send(
  { config }: Dependencies,
  exchange: Exchange,
  { status = 200, headers, body }: HTTPGraphQLResponse,
  coding?: Coding,
): Promise<void> {
  if (body.kind === 'complete') rejectLong(body.string, config.graphqlMaxResponseBytes);
  const { 'content-type': type = JSON_TYPE, ...rest } = Object.fromEntries(headers);
  // Apollo Server's names are lower case. Title case replaces headers that were set before.
  exchange.set(
    Object.fromEntries(
      Object.entries(rest).map(([name, value]) => [canonicalHeaderName(name), value]),
    ),
  );
  if (body.kind === 'complete')
    return sendCompressed(exchange, coding, status, { body: body.string }, type);
  if (exchange.isCancelled) return;
  exchange.set({ 'Content-Type': type });
  exchange.start(status);
  for await (const chunk of body.asyncIterator) exchange.write(chunk);
  exchange.res.end();
}

function headersOf(req: IncomingMessage): HeaderMap {
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}
