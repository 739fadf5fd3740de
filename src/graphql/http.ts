import type { IncomingMessage } from 'node:http';
import { ApolloServer, HeaderMap, type HTTPGraphQLResponse } from '@apollo/server';
import { ApolloServerPluginCacheControlDisabled, ApolloServerPluginLandingPageDisabled } from '@apollo/server/plugin/disabled';
import accepts from 'accepts';
import type { GraphQLSchema } from 'graphql';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { isLonger } from '../core/text.ts';
import { JSON_TYPE } from '../http/responses.ts';
import { parseJson, readGraphqlText } from '../http/body.ts';
import { identify, isAnonymous } from '../http/credentials.ts';
import { answeredAsKept, codedTagOf, tagOf, VARY_BY_TYPE } from '../http/http-cache.ts';
import { acceptedCoding, codingFor, mayBeCompressed, sendCompressed, VARY_BY_CODING, type Coding } from '../http/compression.ts';
import { answerInTime } from '../http/request-timeout.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Endpoint } from '../http/paths.ts';
import { HttpError } from '../http/http-error.ts';
import { searchOf, titled } from '../http/request-headers.ts';
import { makeSchema } from './schema.ts';
import { contextOf, type Services } from '../http/dependencies.ts';
import { operationPlugin } from './operation.plugin.ts';
import { Operations } from '../telemetry/operations.ts';
import type { GraphqlShortcuts, ShortAnswer } from './compiled/compiled-endpoint.ts';
import type { Shortcuts } from './compiled/shortcuts.ts';
import { conditionalFaultsOf } from './normalization.ts';
import { costPlugin } from './cost.plugin.ts';
import { Documents } from './documents.ts';
import { formatError } from './errors.ts';
import { answerEvents, asksForEvents } from './subscriptions/sse.ts';
import { idempotencyPlugin } from './idempotency.plugin.ts';
import { legacyStatusPlugin } from './http-status.plugin.ts';
import { MAX_VALIDATION_ERRORS, MAX_VARIABLE_ERRORS, validationRules } from './limits.ts';
import { RefusedDocuments } from './refused-documents.ts';
import { openLive, WORDING, type Live } from './subscriptions/connections.ts';
import { scalarFaultsPlugin } from './input-errors.plugin.ts';
import { subscriptionsPlugin } from './subscriptions/subscriptions.plugin.ts';
import { unavailablePlugin } from './unavailable.plugin.ts';
import { trustedDocuments, type TrustedDocuments } from './trusted-documents.ts';

const NOT_STORED = { 'Cache-Control': 'no-store' };
const NOT_STORED_BY_CODING = { ...NOT_STORED, ...VARY_BY_CODING };

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
  refused: RefusedDocuments;
  answerPage: Endpoint['answer'] | undefined;
}

/** Starts Apollo Server on our schema; its endpoints are served like every other path. A browser is answered the page, if there is one. */
export async function openGraphqlDoor(
  services: Services,
  all: Shortcuts,
  answerPage: Endpoint['answer'] | undefined,
): Promise<GraphqlDoor> {
  const { graphqlLimits } = services.config;
  const trusted = trustedDocuments(services.config);
  const schema = await makeSchema();
  const operations = new Operations(trusted?.operationNames);
  const shortcuts = all.graphql(schema, operations);
  const refused = new RefusedDocuments();
  const apollo = new ApolloServer<Context>({
    schema,
    // Apollo Server's refusal speaks of its own options: ours is among the rules.
    introspection: true,
    // formatError leaves hints at the schema out, of all errors.
    hideSchemaDetailsFromClientErrors: false,
    includeStacktraceInErrorResponses: false,
    // There are no cookies: what another site's page sends carries nobody's credentials.
    csrfPrevention: false,
    // Registering documents by hash would let anyone fill our memory.
    persistedQueries: false,
    documentStore: new Documents(),
    stopOnTerminationSignals: false,
    parseOptions: { maxTokens: graphqlLimits.tokens },
    validationRules: validationRules(services.config),
    validationOptions: { maxErrors: MAX_VALIDATION_ERRORS },
    executionOptions: { maxCoercionErrors: MAX_VARIABLE_ERRORS },
    formatError: (formatted, error) => formatError(services, formatted, error),
    plugins: [
      subscriptionsPlugin,
      costPlugin(graphqlLimits.cost),
      idempotencyPlugin(services),
      legacyStatusPlugin,
      unavailablePlugin,
      scalarFaultsPlugin,
      shortcuts.plugin,
      refused.plugin,
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
    errorKey: WORDING.errorKey,
    answer: (exchange) => answer(services, { apollo, shortcuts, trusted, live, schema, refused, answerPage }, exchange),
  });
  return { endpoints: [endpoint('GET'), endpoint('POST')], live, stop: () => apollo.stop() };
}

async function answer(
  services: Services,
  { apollo, shortcuts, trusted, live, schema, refused, answerPage }: Door,
  exchange: Exchange,
): Promise<void> {
  const { req } = exchange;
  if (req.method !== 'HEAD' && asksForEvents(req)) return answerInTime(services, exchange, WORDING, () => answerEvents(live, exchange));
  if (answerPage && req.method !== 'POST' && accepts(req).type(['json', 'html']) === 'html') return answerPage(exchange);
  await answerInTime(services, exchange, WORDING, async () => {
    const text = req.method === 'POST' ? await readGraphqlText(exchange) : undefined;
    const ctx = contextOf(services, exchange);
    const shared = text === undefined ? undefined : shortcuts.shared(ctx, req, text);
    if (shared) return sendPlain(services, exchange, shared);
    const sent = text === undefined ? {} : parseJson(text);
    // What is shared has come this way before, with the same text.
    const body = trusted ? trusted.readBody(ctx, sent) : sent;
    const search = trusted && req.method !== 'POST' ? trusted.readSearch(ctx, searchOf(req)) : searchOf(req);
    if (!isAnonymous(req)) await identify(ctx, exchange);
    const planned = text === undefined ? undefined : await shortcuts.planned(ctx, req, text, body);
    if (planned) return sendPlain(services, exchange, planned);
    const document = text === undefined ? undefined : documentIn(body);
    const before = refused.find(req, document);
    if (before) {
      exchange.seen.errors = before.codes;
      exchange.set(NOT_STORED);
      return send(services, exchange, before.answer);
    }
    refuseConditional(services, schema, text === undefined ? new URLSearchParams(search).get('query') : document);
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
    refused.keep(exchange, document, answered);
    // Where nothing says for how long an answer may be kept, someone would guess.
    exchange.set(NOT_STORED);
    const forEveryone = bodyForEveryone(req, answered);
    const coding = codingOf(services, exchange, answered);
    if (forEveryone !== undefined && answeredAsKept(exchange, services.config, codedTagOf(tagOf(forEveryone), coding), VARY_BY_TYPE))
      return;
    await send(services, exchange, answered, coding);
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

// Credentials are the answers of mutations, and of nothing else. Who compresses one beside what somebody else wrote gives it away by its length.
function codingOf({ config }: Services, exchange: Exchange, { body }: HTTPGraphQLResponse): Coding | undefined {
  if (exchange.seen.operation?.type !== 'query' || body.kind !== 'complete') return undefined;
  return codingFor(exchange, config, body.string);
}

// As Apollo Server answers what goes well.
function sendPlain({ config }: Services, exchange: Exchange, found: ShortAnswer): Promise<void> | undefined {
  const { body, operation } = found;
  if (operation) exchange.seen.operation = operation;
  refuseLong(body, config.graphqlLimits.responseBytes);
  const isLong = mayBeCompressed(config, body);
  exchange.set(isLong ? NOT_STORED_BY_CODING : NOT_STORED);
  return sendCompressed(exchange, isLong ? acceptedCoding(exchange.req) : undefined, 200, found, JSON_TYPE);
}

// Its cost bounds how many objects an answer holds, and not how long their texts are.
function refuseLong(body: string, max: number): void {
  if (isLonger(body, max)) throw new DomainError('QUERY_TOO_COMPLEX', `The response has more than ${max} bytes`);
}

async function send(
  { config }: Services,
  exchange: Exchange,
  { status = 200, headers, body }: HTTPGraphQLResponse,
  coding?: Coding,
): Promise<void> {
  if (body.kind === 'complete') refuseLong(body.string, config.graphqlLimits.responseBytes);
  const { 'content-type': type = JSON_TYPE, ...rest } = Object.fromEntries(headers);
  // Apollo Server writes names in lower case; a header is to be replaced whatever its case.
  exchange.set(Object.fromEntries(Object.entries(rest).map(([name, value]) => [titled(name), value])));
  if (body.kind === 'complete') return sendCompressed(exchange, coding, status, { body: body.string }, type);
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
