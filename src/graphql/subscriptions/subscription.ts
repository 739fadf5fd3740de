import { createHash } from 'node:crypto';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  createSourceEventStream,
  execute,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  OperationTypeNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLSchema,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { onAbort } from '../../core/abort.ts';
import type { Context } from '../../request/context.ts';
import { HttpError } from '../../http/http-error.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { recordErrors } from '../../telemetry/request-record.ts';
import { Cost } from '../cost.ts';
import { formatErrors, graphqlErrorOf } from '../errors.ts';
import { sizeOf, type Documents } from '../documents.ts';
import { MAX_VARIABLE_ERRORS } from '../limits.ts';
import type { ActiveSubscription } from './active-subscription.ts';
import { NetworkLimit } from './registry.ts';

/** Maximum number of bytes of responses cached for further subscribers. */
const MAX_CACHED = 8_000_000;
/** Approximate number of bytes of a cached response, and of its values for each byte of JSON. */
const RESPONSE_BYTES = 600;
const VALUE_BYTES = 4;
/** Maximum number of bytes of the documents and variables of a network's subscriptions. */
const MAX_NETWORK_BYTES = 16_000_000;

/** Response of a subscription to an event, shared by all equal subscriptions. */
export interface SharedEvent {
  readonly response: FormattedExecutionResult;
  /** Number of bytes of its JSON. */
  readonly size: number;
  /** Cursor for resuming after this event, if any. */
  readonly cursor?: string | undefined;
}

/** A subscription request of either transport. */
export interface SubscriptionRequest {
  query: string;
  operationName?: string | null | undefined;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
}

/** What a running subscription keeps of its request. */
interface Prepared extends ExecutionArgs {
  /** The same for equal subscriptions. */
  readonly key: string;
  /** Number of bytes of the document and the variables. */
  readonly size: number;
}

const { BAD_USER_INPUT, OPERATION_RESOLUTION_FAILURE, BAD_REQUEST } = ApolloServerErrorCode;

/** Runs subscriptions: by the same documents, rules and limits as queries. */
export class Subscriptions {
  private readonly running: NetworkLimit;
  private readonly memory = new NetworkLimit(
    MAX_NETWORK_BYTES,
    'The subscriptions from this address use too much memory',
  );
  private readonly eventNumbers = new WeakMap<object, number>();
  private lastNumber = 0;
  private readonly responses = new LRUCache<string, SharedEvent, () => Promise<SharedEvent>>({
    maxSize: MAX_CACHED,
    sizeCalculation: ({ size }, key) => RESPONSE_BYTES + VALUE_BYTES * size + key.length,
    // A response for which the cache has no space is still sent.
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context: make }) => make(),
  });

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly documents: Documents,
    private readonly dependencies: Dependencies,
    private readonly operations: Operations,
  ) {
    this.running = new NetworkLimit(
      dependencies.config.maxSubscriptionsPerAddress,
      'Too many subscriptions from this address',
    );
  }

  /**
   * Starts a subscription. Returns its responses, one for each event, or the errors for which it is
   * rejected. The responses throw the error that ends them. Throws RATE_LIMITED if the network has
   * too many subscriptions, or they use too much memory. All errors but the last are formatted and
   * recorded.
   */
  async open(
    ctx: Context,
    request: SubscriptionRequest,
    subscription: ActiveSubscription,
  ): Promise<AsyncGenerator<SharedEvent, void> | readonly GraphQLError[]> {
    const prepared = this.prepare(request, subscription);
    if (!('key' in prepared)) return this.formatted(prepared, subscription);
    const { network = '' } = ctx;
    onAbort(subscription.signal, this.running.add(network));
    onAbort(subscription.signal, this.memory.add(network, prepared.size));
    const source = await createSourceEventStream({ ...prepared, contextValue: ctx });
    const responses = this.responsesTo(source, prepared, subscription);
    // Ends the subscription at once. The generator itself would first wait for the next event.
    const end = responses.return.bind(responses);
    responses.return = (value) => {
      subscription.end();
      return end(value);
    };
    return responses;
  }

  /** Returns errors as the client gets them, and records their codes. */
  formatted(errors: readonly unknown[], { record }: ActiveSubscription): readonly GraphQLError[] {
    const causes = errors.map((error) =>
      error instanceof HttpError ? requestError(error.message) : graphqlErrorOf(error),
    );
    const formatted = formatErrors(this.dependencies, causes);
    recordErrors(record, formatted);
    return formatted.map(({ message, extensions, locations, path }) =>
      Object.assign(new GraphQLError(message, { extensions }), { locations, path }),
    );
  }

  private prepare(
    { query, operationName, variables: given }: SubscriptionRequest,
    { record }: ActiveSubscription,
  ): Prepared | readonly GraphQLError[] {
    const document = this.documents.read(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (!operation)
      return [
        requestError(
          'Unknown operationName, or operationName is missing and the document has several operations',
          OPERATION_RESOLUTION_FAILURE,
        ),
      ];
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION)
      return [
        requestError(
          'Only subscriptions are supported on this transport; send queries and mutations as HTTP requests that accept JSON',
        ),
      ];
    const { schema, dependencies } = this;
    const { variableDefinitions = [] } = operation;
    const variables = given ?? {};
    const { errors } = getVariableValues(schema, variableDefinitions, variables, {
      maxErrors: MAX_VARIABLE_ERRORS,
    });
    if (errors) {
      for (const { extensions } of errors) extensions['code'] ??= BAD_USER_INPUT;
      return errors;
    }
    const { graphqlMaxCost: maxCost } = dependencies.config;
    const costError = new Cost(schema, document, operation, maxCost).errorFor(variables);
    if (costError) return [costError];
    record.operation = this.operations.of(operation);
    // Other variables are unused, and no type bounds their size.
    const declared = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
    const variableValues = Object.fromEntries(
      Object.entries(variables).filter(([name]) => declared.has(name)),
    );
    const values = JSON.stringify([operationName, variableValues]);
    const key = createHash('sha256').update(values).update(query).digest('base64');
    const size = sizeOf(document) + values.length;
    return { schema, document, operationName, variableValues, key, size };
  }

  private async *responsesTo(
    source: AsyncIterable<unknown> | ExecutionResult,
    prepared: Prepared,
    subscription: ActiveSubscription,
  ): AsyncGenerator<SharedEvent, void> {
    try {
      if (Symbol.asyncIterator in source)
        for await (const event of source as AsyncIterable<object>) {
          const sharedEvent = await this.responses.forceFetch(prepared.key + this.numberOf(event), {
            context: () => this.execute(prepared, event),
          });
          const { errors } = sharedEvent.response;
          if (errors) recordErrors(subscription.record, errors);
          yield sharedEvent;
        }
      // If the subscription was ended, its database queries failed because of that.
      else if (!subscription.signal.aborted)
        yield {
          response: {
            errors: this.formatted(source.errors ?? [], subscription).map((error) =>
              error.toJSON(),
            ),
          },
          size: 0,
        };
      if (subscription.error) throw subscription.error;
    } catch (error) {
      // Cancelled work fails because the subscription ended.
      if (!subscription.error && subscription.signal.aborted) return;
      const [formatted] = this.formatted([subscription.error ?? error], subscription);
      throw formatted;
    } finally {
      subscription.end();
    }
  }

  // Identifies an event in the keys of responses.
  private numberOf(event: object): number {
    const number = this.eventNumbers.get(event) ?? ++this.lastNumber;
    this.eventNumbers.set(event, number);
    return number;
  }

  // Executes without a caller, because all subscribers get the same response.
  private async execute(prepared: Prepared, event: object): Promise<SharedEvent> {
    const { data, errors } = await execute({ ...prepared, rootValue: event });
    const response = {
      ...(errors && { errors: formatErrors(this.dependencies, errors) }),
      ...(data !== undefined && { data }),
    };
    const cursor = 'cursor' in event && typeof event.cursor === 'string' ? event.cursor : undefined;
    return { response, size: Buffer.byteLength(JSON.stringify(response)), cursor };
  }
}

function requestError(message: string, code = BAD_REQUEST): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
