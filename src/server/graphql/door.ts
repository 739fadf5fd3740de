import type { IncomingMessage } from 'node:http';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import { ApolloServerPluginCacheControlDisabled, ApolloServerPluginLandingPageDisabled } from '@apollo/server/plugin/disabled';
import accepts from 'accepts';
import type { GraphQLSchema } from 'graphql';
import type { Context } from '../../kit/context.ts';
import { JSON_TYPE } from '../answers.ts';
import { parseJson, readGraphqlText } from '../body.ts';
import { CREDENTIAL_HEADERS, identify, isAnonymous } from '../credentials.ts';
import { answeredAsKept, tagOf, VARY_BY_TYPE } from '../caching.ts';
import { answerInTime } from '../deadline.ts';
import type { Exchange } from '../exchange.ts';
import type { Endpoint } from '../paths.ts';
import { HttpError } from '../http-error.ts';
import { searchOf, titled } from '../request.ts';
import { makeSchema } from '../schema.ts';
import { contextOf, type Services } from '../services.ts';
import { operationPlugin } from '../telemetry/operation.plugin.ts';
import { Operations } from '../telemetry/operations.ts';
import type { GraphqlShortcuts, ShortAnswer } from '../shortcuts/graphql.ts';
import type { Shortcuts } from '../shortcuts/shortcuts.ts';
import { conditionalFaultsOf } from './conditions.ts';
import { costPlugin } from './cost.plugin.ts';
import { Documents } from './documents.ts';
import { formatError } from './errors.ts';
import { answerEvents, asksForEvents } from './event-stream.ts';
import { legacyStatusPlugin } from './legacy-status.plugin.ts';
import { limitRules } from './limits.ts';
import { openLive, WORDING, type Live } from './live.ts';
import { subscriptionsPlugin } from './subscriptions.plugin.ts';
import { unavailablePlugin } from './unavailable.plugin.ts';
import { trustedDocuments, type TrustedDocuments } from './trusted-documents.ts';

/** The GraphQL door, started. */
export interface GraphqlDoor {
  endpoints: Endpoint[];
  /** Those who listen. */
  live: Live;
  stop(): Promise<void>;
}

interface Door {
  apollo: ApolloServer<Context>;
  shortcuts: GraphqlShortcuts;
  /** Undefined where any document may run. */
  trusted: TrustedDocuments | undefined;
  live: Live;
  schema: GraphQLSchema;
  answerPage: Endpoint['answer'] | undefined;
}

/** Starts Apollo Server on our schema; its endpoints are served like every other path. A browser is answered the page, if there is one. */
export async function openGraphqlDoor(
  services: Services,
  all: Shortcuts,
  answerPage: Endpoint['answer'] | undefined,
): Promise<GraphqlDoor> {
  const { explorer, graphqlLimits } = services.config;
  const trusted = trustedDocuments(services.config);
  const schema = await makeSchema();
  const operations = new Operations(trusted?.operationNames);
  const shortcuts = all.graphql(schema, operations);
  const apollo = new ApolloServer<Context>({
    schema,
    introspection: explorer,
    hideSchemaDetailsFromClientErrors: !explorer,
    includeStacktraceInErrorResponses: false,
    // Registering documents by hash would let anyone fill our memory.
    persistedQueries: false,
    documentStore: new Documents(),
    stopOnTerminationSignals: false,
    parseOptions: { maxTokens: graphqlLimits.tokens },
    validationRules: limitRules(graphqlLimits),
    formatError: (formatted, error) => formatError(services, formatted, error),
    plugins: [
      subscriptionsPlugin,
      costPlugin(graphqlLimits.cost),
      legacyStatusPlugin,
      unavailablePlugin,
      shortcuts.plugin,
      operationPlugin(operations),
      // It looks at every field to find out how long an answer may be kept; ours may not be kept at all.
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginLandingPageDisabled(),
    ],
  });
  await apollo.start();
  const live = openLive(services, schema, trusted, operations);
  const endpoint = (method: 'GET' | 'POST'): Endpoint => ({
    method,
    path: '/graphql',
    door: 'graphql',
    reads: [...CREDENTIAL_HEADERS, 'If-None-Match', 'Last-Event-ID', 'apollo-require-preflight', 'x-apollo-operation-name'],
    errorKey: 'detail',
    answer: (exchange) => answer(services, { apollo, shortcuts, trusted, live, schema, answerPage }, exchange),
  });
  return { endpoints: [endpoint('GET'), endpoint('POST')], live, stop: () => apollo.stop() };
}

async function answer(
  services: Services,
  { apollo, shortcuts, trusted, live, schema, answerPage }: Door,
  exchange: Exchange,
): Promise<void> {
  const { req } = exchange;
  if (req.method !== 'HEAD' && asksForEvents(req)) return answerInTime(services, exchange, WORDING, () => answerEvents(live, exchange));
  if (answerPage && req.method !== 'POST' && accepts(req).type(['json', 'html']) === 'html') return answerPage(exchange);
  await answerInTime(services, exchange, WORDING, async () => {
    const text = req.method === 'POST' ? await readGraphqlText(exchange) : undefined;
    const ctx = contextOf(services, exchange);
    const shared = text === undefined ? undefined : shortcuts.shared(ctx, req, text);
    if (shared) return sendPlain(exchange, shared);
    const sent = text === undefined ? {} : parseJson(text);
    // What is shared has come this way before, with the same text.
    const body = trusted ? trusted.readBody(ctx, sent) : sent;
    const search = trusted && req.method !== 'POST' ? trusted.readSearch(ctx, searchOf(req)) : searchOf(req);
    if (!isAnonymous(req)) await identify(ctx, exchange);
    const planned = text === undefined ? undefined : await shortcuts.planned(ctx, req, text, body);
    if (planned) return sendPlain(exchange, planned);
    refuseConditional(services, schema, text === undefined ? new URLSearchParams(search).get('query') : documentIn(body));
    const answered = await apollo.executeHTTPGraphQLRequest({
      // What is asked by HEAD is answered as to GET; Node leaves the body out.
      httpGraphQLRequest: {
        method: req.method === 'HEAD' ? 'GET' : (req.method ?? ''),
        headers: headersOf(req),
        search,
        body,
      },
      context: async () => ctx,
    });
    // Where nothing says for how long an answer may be kept, someone would guess.
    exchange.set({ 'Cache-Control': 'no-store' });
    const forEveryone = bodyForEveryone(req, answered);
    if (forEveryone !== undefined && answeredAsKept(exchange, services.config, tagOf(forEveryone), VARY_BY_TYPE)) return;
    await send(exchange, answered);
  });
}

// Apollo Server would take what fails then for a fault of its own.
function refuseConditional({ config }: Services, schema: GraphQLSchema, text: unknown): void {
  const [fault] = conditionalFaultsOf(schema, text, config.graphqlLimits.tokens);
  if (fault) throw new HttpError(400, fault.message);
}

function documentIn(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'query' in body ? body.query : undefined;
}

// What is asked by GET changes nothing; without credentials, whoever asks the same gets the same. An error may pass.
function bodyForEveryone(req: IncomingMessage, { status = 200, body }: HTTPGraphQLResponse): string | undefined {
  if (req.method === 'POST' || status !== 200 || !isAnonymous(req) || body.kind !== 'complete') return undefined;
  return body.string.startsWith('{"errors"') ? undefined : body.string;
}

// As Apollo Server answers what goes well.
function sendPlain(exchange: Exchange, { body, operation }: ShortAnswer): void {
  if (operation) exchange.seen.operation = operation;
  exchange.set({ 'Cache-Control': 'no-store' });
  exchange.send(200, body, JSON_TYPE);
}

async function send(exchange: Exchange, { status = 200, headers, body }: HTTPGraphQLResponse): Promise<void> {
  const { 'content-type': type = JSON_TYPE, ...rest } = Object.fromEntries(headers);
  // Apollo Server writes names in lower case; a header is to be replaced whatever its case.
  exchange.set(Object.fromEntries(Object.entries(rest).map(([name, value]) => [titled(name), value])));
  if (body.kind === 'complete') {
    exchange.send(status, body.string, type);
    return;
  }
  if (exchange.isGivenUp) return;
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
