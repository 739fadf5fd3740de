import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  createSourceEventStream,
  execute,
  getOperationAST,
  GraphQLError,
  OperationTypeNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { onAbort, unlessAborted } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { KeyedLimit } from '../../core/keyed-limit.ts';
import { NetworkLimit } from '../../core/network-limit.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import { graphqlExtensions } from '../../http/error-map.ts';
import type { Context, RequestHandle } from '../../request/context.ts';
import type { Operations } from '../../telemetry/operations.ts';
import {
  recordErrors,
  type Operation,
  type RequestRecord,
} from '../../telemetry/request-record.ts';
import { Cost } from '../cost.ts';
import type { Documents } from '../documents.ts';
import { formatErrors, graphqlErrorOf } from '../errors.ts';

/** Maximum number of responses cached for further subscribers. A response has at most some 10 KB. */
const MAX_RESPONSES = 1_000;
/**
 * Maximum length of the requests of one network's subscriptions, in characters. A parsed one takes up
 * to eighty times as much memory, as long as it waits for its start and runs.
 */
const MAX_LENGTH = 1_000_000;
/** The operation in logs and metrics until the document is parsed. */
const SUBSCRIPTION: Operation = { type: 'subscription', label: 'subscription' };

const NOT_A_SUBSCRIPTION =
  'Only subscriptions are supported on this transport; operationName must name one if the document has several operations';
const { BAD_USER_INPUT, BAD_REQUEST } = ApolloServerErrorCode;

/** A subscription request of either transport. */
interface SubscriptionRequest {
  query: string;
  operationName?: string | null | undefined;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
  extensions?: unknown;
}

/** A subscription that may start. */
interface Prepared extends ExecutionArgs {
  contextValue: Context;
  subscription: ActiveSubscription;
  /** The same for equal subscriptions. */
  key: string;
}

/** A running subscription. Services use it as the request that they run for. */
export class ActiveSubscription extends AbortController implements RequestHandle {
  readonly startedAt = performance.now();

  constructor(
    /** The request that opened the connection. */
    readonly req: IncomingMessage,
    /** The request record for logs and metrics: by default, of a subscription on a WebSocket. */
    readonly record: RequestRecord = {
      requestId: randomUUID(),
      method: 'GET',
      api: 'graphql',
      endpoint: 'GET /graphql',
      status: 101,
      bytes: 0,
      end: 'answered',
    },
  ) {
    super();
    record.operation = SUBSCRIPTION;
  }

  get requestId(): string {
    return this.record.requestId;
  }

  get connection(): object {
    return this.req.socket;
  }

  /** The error for the client, if the client did not end the subscription. */
  get error(): DomainError | undefined {
    const reason: unknown = this.signal.reason;
    return reason instanceof DomainError ? reason : undefined;
  }

  /** Ends the subscription, with or without an error for the client. */
  end(error?: DomainError): void {
    if (error) recordErrors(this.record, [{ extensions: graphqlExtensions(error) }]);
    this.abort(error);
  }

  /** Does nothing: a subscription is excluded from admission control from the start. */
  exclude(): void {}
}

/** Runs subscriptions: by the same documents, rules and limits as queries. */
export class Subscriptions {
  private readonly running: NetworkLimit;
  private readonly lengths: NetworkLimit;
  /** Starts one after another: of each network, and of the networks in turn. */
  private readonly startsOfNetwork = new KeyedLimit();
  private readonly starts = new KeyedLimit();
  /** Responses to events, shared by equal subscriptions. */
  private readonly responses = new LRUCache<string, Promise<ExecutionResult>>({
    max: MAX_RESPONSES,
  });
  private readonly eventNumbers = new WeakMap<object, number>();
  private lastNumber = 0;
  private readonly cursors = new WeakMap<object, string>();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly documents: Documents,
    private readonly dependencies: Dependencies,
    private readonly operations: Operations,
  ) {
    const message = 'Too many subscriptions from this address';
    this.running = new NetworkLimit(dependencies.config.maxSubscriptionsPerAddress, message);
    this.lengths = new NetworkLimit(MAX_LENGTH, message);
  }

  /**
   * Returns the arguments of `subscribe`, or the errors for which the subscription is rejected:
   * RATE_LIMITED if the network has too many subscriptions.
   */
  async prepare(
    ctx: Context,
    readRequest: () => SubscriptionRequest,
    subscription: ActiveSubscription,
  ): Promise<Prepared | readonly GraphQLError[]> {
    const { network = '' } = ctx;
    const { signal } = subscription;
    try {
      onAbort(signal, this.running.add(network));
      const request = readRequest();
      onAbort(signal, this.lengths.add(network, lengthOf(request)));
      // One start in each turn of the event loop: a chunk of a WebSocket may contain many documents.
      const turn = this.startsOfNetwork.run(network, () =>
        this.starts.run('', () => setImmediate()),
      );
      await unlessAborted(signal, turn);
      const prepared = this.read(ctx, request, subscription);
      return 'key' in prepared ? prepared : this.rejected(prepared, subscription);
    } catch (error) {
      return this.rejected([error], subscription);
    }
  }

  /**
   * Starts a prepared subscription. Returns its responses, one for each event, or its errors. The
   * responses throw the error that ends them.
   */
  async subscribe(args: ExecutionArgs): Promise<AsyncGenerator<ExecutionResult> | ExecutionResult> {
    const prepared = args as Prepared;
    const { subscription } = prepared;
    const source = await createSourceEventStream(prepared);
    if (!(Symbol.asyncIterator in source)) {
      const { errors = [] } = source;
      // Errors without a path are of variables.
      for (const { path, extensions } of errors) if (!path) extensions['code'] ??= BAD_USER_INPUT;
      return { errors: this.rejected(errors, subscription) };
    }
    const responses = this.responsesTo(source as AsyncIterable<object>, prepared);
    // Ends the subscription at once. The generator itself would first wait for the next event.
    const end = responses.return.bind(responses);
    responses.return = (value) => {
      subscription.end();
      return end(value);
    };
    return responses;
  }

  /** Returns the cursor for resuming after an event, if it has one, by its response. */
  cursorOf(response: object): string | undefined {
    return this.cursors.get(response);
  }

  private read(
    ctx: Context,
    request: SubscriptionRequest,
    subscription: ActiveSubscription,
  ): Prepared | readonly GraphQLError[] {
    const { query, operationName, variables } = request;
    const document = this.documents.read(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (operation?.operation !== OperationTypeNode.SUBSCRIPTION)
      return [new GraphQLError(NOT_A_SUBSCRIPTION, { extensions: { code: BAD_REQUEST } })];
    const { schema } = this;
    const variableValues = variables ?? {};
    const { graphqlMaxCost: maxCost } = this.dependencies.config;
    const costError = new Cost(schema, document, operation, maxCost).errorFor(variableValues);
    if (costError) return [costError];
    subscription.record.operation = this.operations.of(operation);
    const key = hash('sha256', JSON.stringify([query, operationName, variableValues]), 'base64');
    return {
      schema,
      document,
      operationName,
      variableValues,
      contextValue: ctx,
      subscription,
      key,
    };
  }

  private async *responsesTo(
    source: AsyncIterable<object>,
    prepared: Prepared,
  ): AsyncGenerator<ExecutionResult, void> {
    const { subscription } = prepared;
    try {
      for await (const event of source) yield await this.responseTo(event, prepared);
      if (subscription.error) throw subscription.error;
    } catch (error) {
      // Cancelled work fails because the subscription ended.
      if (!subscription.error && subscription.signal.aborted) return;
      const [formatted] = this.rejected([error], subscription);
      throw formatted;
    } finally {
      subscription.end();
    }
  }

  private responseTo(event: object, prepared: Prepared): Promise<ExecutionResult> {
    const number = this.eventNumbers.get(event) ?? ++this.lastNumber;
    this.eventNumbers.set(event, number);
    const key = prepared.key + number;
    let response = this.responses.get(key);
    if (!response) this.responses.set(key, (response = this.execute(event, prepared)));
    return response;
  }

  // Executes without a caller, because all subscribers get the same response.
  private async execute(event: object, prepared: Prepared): Promise<ExecutionResult> {
    const { data, errors } = await execute({
      ...prepared,
      rootValue: event,
      contextValue: undefined,
    });
    const response: ExecutionResult = {
      ...(errors && { errors: this.formatted(errors) }),
      ...(data !== undefined && { data }),
    };
    if ('cursor' in event && typeof event.cursor === 'string')
      this.cursors.set(response, event.cursor);
    return response;
  }

  // Ends the subscription. Returns the errors as the client gets them. If the subscription was ended
  // before, its work failed because of that.
  private rejected(
    errors: readonly unknown[],
    subscription: ActiveSubscription,
  ): readonly GraphQLError[] {
    const causes = subscription.error ? [subscription.error] : errors;
    const formatted = this.formatted(causes.map(graphqlErrorOf));
    recordErrors(subscription.record, formatted);
    subscription.end();
    return formatted;
  }

  private formatted(errors: readonly GraphQLError[]): GraphQLError[] {
    return formatErrors(this.dependencies, errors).map(({ message, extensions, locations, path }) =>
      Object.assign(new GraphQLError(message, { extensions }), { locations, path }),
    );
  }
}

function lengthOf(request: SubscriptionRequest): number {
  try {
    return JSON.stringify(request).length;
  } catch {
    throw new GraphQLError('Variables nest too deeply', { extensions: { code: BAD_USER_INPUT } });
  }
}
