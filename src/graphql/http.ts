import type { IncomingMessage } from 'node:http';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from '@apollo/server/plugin/disabled';
import accepts from 'accepts';
import type { RequestHandler, Response } from 'express';
import { features } from '../features.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { exceedsBytes } from '../core/text.ts';
import { graphqlBody, parseJson } from '../http/body.ts';
import { allowCompression, sendStored } from '../http/compression.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { httpContextOf, type Dependencies } from '../http/dependencies.ts';
import type { Endpoint } from '../http/endpoints.ts';
import type { ResponseCache } from '../http/response-cache.ts';
import { JSON_TYPE, sendBody, sendIfNotModified, tagOf, VARY_BY_TYPE } from '../http/responses.ts';
import { makeSchema } from './schema.ts';
import { operationPlugin } from './operation.plugin.ts';
import { Operations } from '../telemetry/operations.ts';
import {
  createCompiledEndpoint,
  type CompiledEndpoint,
  type CompiledResponse,
} from './compiled/compiled-endpoint.ts';
import { CompiledOperations } from './compiled/compiled-operations.ts';
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
import {
  queryStringOf,
  textIn,
  withoutEmptyMembers,
  withoutEmptyParameters,
} from './request-parameters.ts';
import { inputErrorsPlugin } from './input-errors.plugin.ts';
import { subscriptionsPlugin } from './subscriptions/subscriptions.plugin.ts';
import { unavailablePlugin } from './unavailable.plugin.ts';
import { trustedDocuments, type TrustedDocuments } from './trusted-documents.ts';

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
  sendPage: RequestHandler | undefined;
}

/** Starts Apollo Server. Its endpoints send browsers the page of `sendPage`, if given. */
export async function openGraphqlApi(
  dependencies: Dependencies,
  cache: ResponseCache | undefined,
  sendPage: RequestHandler | undefined,
  isOverloaded: () => boolean,
): Promise<GraphqlApi> {
  const { config } = dependencies;
  const trusted = trustedDocuments(config);
  const schema = await makeSchema();
  const operations = new Operations(trusted?.operationNames);
  const roots = new Map(
    features.flatMap(({ compiledFields: fields = {} }) => Object.entries(fields)),
  );
  const compiledEndpoint = createCompiledEndpoint(
    new CompiledOperations(schema, roots, config.graphqlMaxCost, operations),
    cache,
  );
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
    upgradeErrors: new WeakMap(),
    isOverloaded,
    subscriptions: new Subscriptions(schema, documents, dependencies, operations),
    trusted,
  };
  const handler = answer(dependencies, {
    apollo,
    apolloDocuments,
    compiledEndpoint,
    trusted,
    connections,
    sendPage,
  });
  const endpoint = { path: '/graphql', api: 'graphql', errorFormat: ERROR_FORMAT } as const;
  return {
    endpoints: [
      { ...endpoint, method: 'GET', handlers: [handler] },
      { ...endpoint, method: 'POST', handlers: [...graphqlBody(), handler] },
    ],
    connections,
    stop: () => apollo.stop(),
  };
}

function answer(dependencies: Dependencies, state: EndpointState): RequestHandler {
  const { apollo, apolloDocuments, compiledEndpoint, trusted, connections, sendPage } = state;
  const { config } = dependencies;
  return async (req, res, next) => {
    const upgradeError = connections.upgradeErrors.get(req);
    if (upgradeError) throw upgradeError;
    if (req.method !== 'HEAD' && acceptsEventStream(req)) return sendEventStream(connections, res);
    if (sendPage && req.method !== 'POST' && accepts(req).type(['json', 'html']) === 'html')
      return void sendPage(req, res, next);
    const text = req.method === 'POST' ? textIn(req) : undefined;
    const ctx = httpContextOf(dependencies, res);
    const cached = text === undefined ? undefined : compiledEndpoint.cached(ctx, req, text);
    if (cached) return sendPlain(dependencies, res, cached);
    const parsed = text === undefined ? {} : withoutEmptyMembers(parseJson(text));
    // A cached response passed this check before, with the same text.
    const body = trusted ? trusted.readBody(parsed) : parsed;
    const sent = req.method === 'POST' ? '' : withoutEmptyParameters(queryStringOf(req));
    const search = trusted && req.method !== 'POST' ? trusted.readSearch(sent) : sent;
    if (!isAnonymous(req)) await identify(ctx, res);
    const compiled =
      text === undefined ? undefined : await compiledEndpoint.compiled(ctx, req, text, body);
    if (compiled) return sendPlain(dependencies, res, compiled);
    const respond = () =>
      apolloDocuments.respond(res, documentIn(body), () =>
        apollo.executeHTTPGraphQLRequest({
          // HEAD is processed as GET; Node omits the body.
          httpGraphQLRequest: {
            method: req.method === 'HEAD' ? 'GET' : req.method,
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
    if (!res.headersSent) await send(dependencies, res, response);
  };
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

// Sends a success response as Apollo Server does.
async function sendPlain(
  { config }: Dependencies,
  res: Response,
  response: CompiledResponse,
): Promise<void> {
  const { body, operation } = response;
  if (operation) res.locals.record.operation = operation;
  rejectLong(body, config.graphqlMaxResponseBytes);
  if (res.headersSent) return;
  res.setHeader('Cache-Control', 'no-store');
  allowCompression(res, config, response);
  await sendStored(res, response);
}

// The cost bounds the number of objects of a response, not the length of their texts.
function rejectLong(body: string, max: number): void {
  if (exceedsBytes(body, max))
    throw new DomainError('QUERY_TOO_COMPLEX', `The response has more than ${max} bytes`);
}

async function send(
  { config }: Dependencies,
  res: Response,
  response: HTTPGraphQLResponse,
): Promise<void> {
  const { status = 200, headers, body } = response;
  if (body.kind !== 'complete') throw new TypeError('Incremental delivery is not supported');
  rejectLong(body.string, config.graphqlMaxResponseBytes);
  // Without this header, caches choose a lifetime heuristically.
  res.setHeader('Cache-Control', 'no-store');
  const { 'content-type': type = JSON_TYPE, ...rest } = Object.fromEntries(headers);
  for (const [name, value] of Object.entries(rest)) res.setHeader(name, value);
  const publicBody = publicBodyOf(res.req, response);
  const isCompressible = res.locals.record.operation?.type === 'query' && status === 200;
  // Only responses of mutations contain credentials. Compressing a credential together with text
  // that others chose would reveal it by the length, so only queries are compressed.
  if (isCompressible) allowCompression(res, config, { body: body.string });
  if (publicBody !== undefined && sendIfNotModified(res, config, tagOf(publicBody), VARY_BY_TYPE))
    return;
  sendBody(res, status, body.string, type);
}

function headersOf(req: IncomingMessage): HeaderMap {
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}
