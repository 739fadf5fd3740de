import { createHash } from 'node:crypto';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  createSourceEventStream,
  execute,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  OperationTypeNode,
  parse,
  specifiedRules,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Context } from '../../request/context.ts';
import { DomainError, type ErrorCode } from '../../core/errors.ts';
import { recordOf, type Dependencies } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { recordErrors, type Operation } from '../../telemetry/request-record.ts';
import { Cost } from '../cost.ts';
import { SharedEvents, type SharedEvent } from './shared-events.ts';
import { formatErrors, clientMessage } from '../errors.ts';
import { DocumentPool } from '../document-pool.ts';
import { MAX_VALIDATION_ERRORS, MAX_VARIABLE_ERRORS, validationRules } from '../limits.ts';
import type { ActiveSubscription } from './active-subscription.ts';
import { validateWithoutConditions } from '../normalization.ts';
import { createRefusalCache } from '../refused-documents.ts';

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

const {
  GRAPHQL_PARSE_FAILED,
  GRAPHQL_VALIDATION_FAILED,
  BAD_USER_INPUT,
  OPERATION_RESOLUTION_FAILURE,
  BAD_REQUEST,
} = ApolloServerErrorCode;

/** Number of characters that an error counts in the cache of refusals, beside its message. */
const ERROR_SIZE = 2_000;

/** The operation in logs and metrics until the document is parsed. */
export const SUBSCRIPTION: Operation = {
  type: OperationTypeNode.SUBSCRIPTION,
  label: 'subscription',
};

/** Parses and validates subscriptions by the same rules and limits as queries. */
export class Subscriptions {
  private readonly rules;
  private readonly documents: DocumentPool;
  private readonly sharedEvents = new SharedEvents();
  private readonly refused = createRefusalCache((errors: readonly StoredError[]) =>
    errors.reduce((sum, { message }) => sum + message.length + ERROR_SIZE, 0),
  );

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly dependencies: Dependencies,
    private readonly operations: Operations,
  ) {
    const { config } = dependencies;
    this.documents = new DocumentPool(config.maxSubscriptionsPerAddress);
    this.rules = [...specifiedRules, ...validationRules(config)];
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
    const document = this.read(query);
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
    subscription.onCancel(
      this.documents.acquire(ctx.network ?? '', query, document, requestKey.length),
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

  private read(text: string): DocumentNode | readonly GraphQLError[] {
    const pooled = this.documents.get(text);
    if (pooled) return pooled;
    const stored = this.refused.get(text);
    if (stored) return stored.map(fromStored);
    const document = this.parse(text);
    const errors = document instanceof GraphQLError ? [document] : this.validationErrors(document);
    if (!(document instanceof GraphQLError) && errors.length === 0) return document;
    const storedErrors = errors.map((error) =>
      toStored(error, this.dependencies.config.graphqlExplorer),
    );
    this.refused.set(text, storedErrors);
    return storedErrors.map(fromStored);
  }

  private validationErrors(document: DocumentNode): readonly GraphQLError[] {
    const conditionErrors = validateWithoutConditions(this.schema, document);
    const errors =
      conditionErrors.length > 0
        ? conditionErrors
        : validate(this.schema, document, this.rules, { maxErrors: MAX_VALIDATION_ERRORS });
    return errors.map((error) => withCode(error, GRAPHQL_VALIDATION_FAILED));
  }

  private parse(text: string): DocumentNode | GraphQLError {
    try {
      return parse(text, { maxTokens: this.dependencies.config.graphqlMaxTokens });
    } catch (error) {
      if (error instanceof GraphQLError) return withCode(error, GRAPHQL_PARSE_FAILED);
      throw error;
    }
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
    if (!subscription.isCancelled) throw error;
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

/** A cached document error. An Error would retain what its stack references: the connection. */
interface StoredError {
  message: string;
  locations: GraphQLError['locations'];
  extensions: Readonly<Record<string, unknown>>;
  /** The code of the DomainError that caused the error. */
  code: ErrorCode | undefined;
}

function toStored(
  { message, locations, originalError, extensions }: GraphQLError,
  isExplorer: boolean,
): StoredError {
  return {
    message: clientMessage(message, isExplorer),
    locations: locations?.map(({ line, column }) => ({ line, column })),
    extensions: { ...extensions },
    code: originalError instanceof DomainError ? originalError.code : undefined,
  };
}

function fromStored({ message, locations, extensions, code }: StoredError): GraphQLError {
  const originalError = code && new DomainError(code, message);
  return Object.assign(
    new GraphQLError(message, { extensions: { ...extensions }, originalError }),
    { locations },
  );
}

function withCode(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}
