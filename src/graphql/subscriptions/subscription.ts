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
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { onAbort } from '../../core/abort.ts';
import type { Context } from '../../request/context.ts';
import { recordOf, type Dependencies } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { recordErrors, type Operation } from '../../telemetry/request-record.ts';
import { Cost } from '../cost.ts';
import { SharedEvents, type SharedEvent } from './shared-events.ts';
import { formatErrors } from '../errors.ts';
import { DocumentPool } from '../document-pool.ts';
import type { Documents } from '../documents.ts';
import { MAX_VARIABLE_ERRORS } from '../limits.ts';
import type { ActiveSubscription } from './active-subscription.ts';

/** A subscription request of either transport. */
export interface SubscriptionRequest {
  query: string;
  operationName?: string | null | undefined;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
}

/** A validated subscription, ready to start. */
export interface Prepared extends ExecutionArgs {
  contextValue: Context;
  subscription: ActiveSubscription;
  /** Executes the subscription for an event, once for all equal subscriptions. */
  executeFor: (event: object) => SharedEvent | Promise<SharedEvent>;
  /** Called when the subscription has started, or has failed to start. */
  onStarted?: () => void;
}

const { BAD_USER_INPUT, OPERATION_RESOLUTION_FAILURE, BAD_REQUEST } = ApolloServerErrorCode;

/** The operation in logs and metrics until the document is parsed. */
export const SUBSCRIPTION: Operation = {
  type: OperationTypeNode.SUBSCRIPTION,
  label: 'subscription',
};

/** Prepares subscriptions: by the same documents, rules and limits as queries. */
export class Subscriptions {
  private readonly pool: DocumentPool;
  private readonly sharedEvents = new SharedEvents();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly documents: Documents,
    private readonly dependencies: Dependencies,
    private readonly operations: Operations,
  ) {
    this.pool = new DocumentPool(dependencies.config.maxSubscriptionsPerAddress);
  }

  /**
   * Returns the prepared subscription, or the errors for which it is rejected. Throws as
   * `DocumentPool.acquire`.
   */
  prepare(
    ctx: Context,
    { query, operationName, variables }: SubscriptionRequest,
    subscription: ActiveSubscription,
  ): Prepared | readonly GraphQLError[] {
    const document = this.pool.get(query) ?? this.documents.read(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (!operation)
      return [
        requestError(
          'Unknown operationName, or operationName is missing and the document has several operations',
          OPERATION_RESOLUTION_FAILURE,
        ),
      ];
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION) {
      return [
        requestError(
          'Only subscriptions are supported on this transport; send queries and mutations as HTTP requests that accept JSON',
          BAD_REQUEST,
        ),
      ];
    }
    const { errors } = getVariableValues(
      this.schema,
      operation.variableDefinitions ?? [],
      variables ?? {},
      {
        maxErrors: MAX_VARIABLE_ERRORS,
      },
    );
    if (errors) return errors.map((error) => withCode(error, BAD_USER_INPUT));
    const { graphqlMaxCost: maxCost } = this.dependencies.config;
    const costError = new Cost(this.schema, document, operation, maxCost).errorFor(variables ?? {});
    if (costError) return [costError];
    const declaredVariables = declaredOnly(operation, variables ?? {});
    const requestKey = JSON.stringify([operationName, declaredVariables]);
    onAbort(
      subscription.signal,
      this.pool.acquire(ctx.network ?? '', query, document, requestKey.length),
    );
    const record = recordOf(ctx);
    if (record) record.operation = this.operations.of(operation);
    const args: ExecutionArgs = {
      schema: this.schema,
      document,
      operationName,
      variableValues: declaredVariables,
    };
    const key = createHash('sha256').update(requestKey).update(query).digest('base64');
    return {
      ...args,
      contextValue: ctx,
      subscription,
      executeFor: (event) => this.sharedEvents.get(key, event, () => this.execute(args, event)),
    };
  }

  // Executes without a caller, because all subscribers get the same response.
  private async execute(args: ExecutionArgs, event: object): Promise<SharedEvent> {
    const { data, errors } = await execute({ ...args, rootValue: event });
    const formatted = errors && formatErrors(this.dependencies, errors);
    return {
      text: JSON.stringify({ errors: formatted, data }),
      errors: formatted,
      ...cursorIn(event),
    };
  }
}

/**
 * Starts a prepared subscription. Yields a response for each event until the subscription ends, and
 * throws the error that it was ended with. Returns an error result if it cannot start.
 */
export async function start(
  prepared: Prepared,
): Promise<AsyncGenerator<SharedEvent, void> | ExecutionResult> {
  const { subscription } = prepared;
  const source = await createSourceEventStream(prepared).finally(prepared.onStarted);
  if (Symbol.asyncIterator in source)
    return endOnReturn(sharedEventsOf(prepared, source), () => subscription.end());
  // If the subscription was ended, its database queries failed because of that.
  const { error: refusal } = subscription;
  return refusal
    ? { errors: [new GraphQLError(refusal.message, { originalError: refusal })] }
    : source;
}

async function* sharedEventsOf(
  prepared: Prepared,
  source: AsyncIterable<unknown>,
): AsyncGenerator<SharedEvent, void> {
  const { subscription, executeFor } = prepared;
  try {
    for await (const event of source) {
      const sharedEvent = await executeFor(event as object);
      if (sharedEvent.errors && subscription.record)
        recordErrors(subscription.record, sharedEvent.errors);
      yield sharedEvent;
    }
    if (subscription.error) throw subscription.error;
  } catch (error) {
    // Cancelled work fails because the subscription ended.
    if (subscription.error) throw subscription.error;
    if (!subscription.signal.aborted) throw error;
  } finally {
    subscription.end();
  }
}

// Ends the subscription at once. The generator's own `return` would wait for its next event.
function endOnReturn<T>(
  generator: AsyncGenerator<T, void>,
  end: () => void,
): AsyncGenerator<T, void> {
  const iterator: Omit<AsyncGenerator<T, void>, typeof Symbol.asyncDispose> = {
    next: () => generator.next(),
    return: (value) => {
      end();
      return generator.return(value);
    },
    throw: (error) => {
      end();
      return generator.throw(error);
    },
    [Symbol.asyncIterator]: () => iterator as AsyncGenerator<T, void>,
  };
  return iterator as AsyncGenerator<T, void>;
}

// Keeps the declared variables. Others are unused, and no type bounds their size.
function declaredOnly(
  { variableDefinitions = [] }: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const names = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => names.has(name)));
}

function cursorIn(event: object): { id?: string } {
  const cursor = 'cursor' in event ? event.cursor : undefined;
  return typeof cursor === 'string' ? { id: cursor } : {};
}

function requestError(message: string, code: ApolloServerErrorCode): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

function withCode(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}
