import {
  ApolloServer,
  HeaderMap,
  type HTTPGraphQLRequest,
  type HTTPGraphQLResponse,
} from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import accepts from 'accepts';
import type { Request, RequestHandler, Response } from 'express';
import type { Context } from '../request/context.ts';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { exceedsBytes } from '../core/text.ts';
import { graphqlBody, parseJson } from '../http/body.ts';
import { RequestContext, findCaller, type Dependencies } from '../http/dependencies.ts';
import type { Endpoint } from '../http/endpoints.ts';
import { isAnonymous } from '../http/headers.ts';
import type { CachedResponse, ResponseCache } from '../http/response-cache.ts';
import { VARY_BY_TYPE, sendBody, sendCompressible, tagOf } from '../http/responses.ts';
import { makeSchema } from './schema.ts';
import { operationPlugin } from './operation.plugin.ts';
import { Operations } from '../telemetry/operations.ts';
import { compiledPlugin, stringifyResult } from './compiled.plugin.ts';
import { Documents } from './documents.ts';
import { formatError } from './errors.ts';
import { EVENTS, sendEventStream } from './subscriptions/sse.ts';
import { idempotencyListener } from './idempotency.plugin.ts';
import { SubscriptionRegistry, type SubscriptionConnections } from './subscriptions/connections.ts';
import { Subscriptions } from './subscriptions/subscription.ts';
import { trustedDocuments, type TrustedDocuments } from './trusted-documents.ts';

const JSON_TYPES = ['application/json', 'application/graphql-response+json'];

/** Starts Apollo Server. Its endpoints send browsers the page of `sendPage`, if given. */
export async function openGraphqlApi(
  dependencies: Dependencies,
  cache: ResponseCache,
  sendPage: RequestHandler | undefined,
  isOverloaded: () => boolean,
) {
  const { config } = dependencies;
  const trusted = trustedDocuments(config);
  const schema = await makeSchema();
  const operations = new Operations();
  const documents = new Documents(schema, config);
  const apollo = new ApolloServer<Context>({
    schema,
    documentStore: documents,
    ...documents.options,
    stringifyResult,
    formatError: (formatted, error) => formatError(dependencies, formatted, error),
    // formatError removes schema hints from all errors.
    hideSchemaDetailsFromClientErrors: false,
    includeStacktraceInErrorResponses: false,
    introspection: config.graphqlExplorer,
    // There are no cookies, so requests from pages of other sites carry no credentials.
    csrfPrevention: false,
    stopOnTerminationSignals: false,
    plugins: [
      // Few requests have the header, and only these get the listener.
      {
        requestDidStart: async ({ request }) => {
          const key = request.http?.headers.get('idempotency-key');
          return key === undefined ? undefined : idempotencyListener(dependencies, key);
        },
      },
      ...(config.compiledOperations ? [compiledPlugin(dependencies, schema, cache)] : []),
      operationPlugin(operations, config.graphqlMaxCost),
      // The plugin visits every field to compute a cache lifetime. Our responses are not stored.
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      // Otherwise APOLLO_KEY alone would send operations and the schema to another company.
      ApolloServerPluginUsageReportingDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
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

  const handler: RequestHandler = async (req, res, next) => {
    const upgradeError = connections.upgradeErrors.get(req);
    if (upgradeError) throw upgradeError;
    if (req.method !== 'HEAD' && acceptsEventStream(req))
      return sendEventStream(connections, res, readRequest(req, trusted));
    if (sendPage && req.method !== 'POST' && accepts(req).type(['json', 'html']) === 'html')
      return sendPage(req, res, next);
    const ctx = (res.locals.ctx = new RequestContext(dependencies, req, res.locals));
    const key = cacheKeyOf(req);
    const cached = key === undefined ? undefined : cache.find(ctx, key);
    if (cached) return sendCached(config, res, cached);
    // A cached response passed the check of trusted documents before, with the same text.
    const request = readRequest(req, trusted);
    if (key === undefined) await findCaller(ctx, req);
    else ctx.cacheKey = key;
    const response = await apollo.executeHTTPGraphQLRequest({
      httpGraphQLRequest: request,
      context: async () => ctx,
    });
    if (res.headersSent) return undefined;
    const { body } = response;
    if (body.kind !== 'complete') throw new TypeError('Incremental delivery is not supported');
    return send(config, res, response, body.string);
  };
  const endpoint = { path: '/graphql', api: 'graphql', errorKey: 'errors' } as const;
  const endpoints: Endpoint[] = [
    { ...endpoint, method: 'GET', handlers: [handler] },
    { ...endpoint, method: 'POST', handlers: [graphqlBody, handler] },
  ];
  return { endpoints, connections, stop: () => apollo.stop() };
}

// Of a client that accepts both, the request is for a query.
function acceptsEventStream(req: Request): boolean {
  if (!req.headers.accept?.includes(EVENTS)) return false;
  return accepts(req).type(EVENTS) === EVENTS && !accepts(req).type(JSON_TYPES);
}

/**
 * Returns the key in the response cache of a request without credentials: its body, if that is no key
 * of the REST API. Other media types have other rules for errors (GraphQL over HTTP, 6).
 */
function cacheKeyOf({ method, headers, body }: Request): string | undefined {
  const { accept = '*/*' } = headers;
  const isJson = accept === '*/*' || accept === 'application/json';
  const isObject = typeof body === 'string' && body.startsWith('{');
  return method === 'POST' && isJson && isObject && isAnonymous({ headers }) ? body : undefined;
}

/** Returns the request for Apollo Server. Throws if its document is not trusted. */
function readRequest(req: Request, trusted: TrustedDocuments | undefined): HTTPGraphQLRequest {
  const headers = new HeaderMap(
    Object.entries(req.headers).map(([name, value]) => [name, String(value)]),
  );
  if (req.method === 'POST') {
    const body = parseJson((req.body as string | undefined) ?? '{}');
    return { method: 'POST', headers, search: '', body: trusted ? trusted.readBody(body) : body };
  }
  const query = `?${req.url.split('?').slice(1).join('?')}`;
  const search = trusted ? trusted.readSearch(query) : query;
  // HEAD is processed as GET; Node omits the body.
  return { method: 'GET', headers, search, body: {} };
}

async function sendCached(config: Config, res: Response, cached: CachedResponse): Promise<void> {
  if (cached.operation) res.locals.record.operation = cached.operation;
  rejectLong(cached.body, config);
  res.setHeader('Cache-Control', 'no-store');
  await sendCompressible(res, config, cached);
}

function send(
  config: Config,
  res: Response,
  { status = 200, headers }: HTTPGraphQLResponse,
  body: string,
): Promise<void> | void {
  rejectLong(body, config);
  // Without this header, caches choose a lifetime heuristically.
  res.setHeader('Cache-Control', 'no-store');
  // A 304 has no type.
  for (const [name, value] of headers) if (name !== 'content-type') res.setHeader(name, value);
  const { req, locals } = res;
  const type = headers.get('content-type');
  // Responses of mutations may contain credentials.
  if (locals.record.operation?.type !== 'query' || status !== 200)
    return sendBody(res, status, body, type);
  // The response to a GET is the same for every anonymous client. Errors may be transient.
  const isPublic = req.method !== 'POST' && isAnonymous(req) && !body.startsWith('{"errors"');
  const tag = isPublic ? { tag: tagOf(body) } : {};
  return sendCompressible(res, config, { body, ...tag }, type, VARY_BY_TYPE);
}

// The cost bounds the number of objects of a response, not the length of their texts.
function rejectLong(body: string, { graphqlMaxResponseBytes: max }: Config): void {
  if (exceedsBytes(body, max))
    throw new DomainError('QUERY_TOO_COMPLEX', `The response has more than ${max} bytes`);
}
