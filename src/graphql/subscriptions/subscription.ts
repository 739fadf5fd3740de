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
import { seenOf, type Services } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { noteErrors, type Operation } from '../../telemetry/request-record.ts';
import { Cost } from '../cost.ts';
import { Deliveries, type Delivery } from './shared-events.ts';
import { formatErrors, told } from '../errors.ts';
import { HeldDocuments } from '../document-pool.ts';
import { MAX_VALIDATION_ERRORS, MAX_VARIABLE_ERRORS, validationRules } from '../limits.ts';
import type { Listening } from './active-subscription.ts';
import { conditionalFaults } from '../normalization.ts';
import { refusalsByText } from '../refused-documents.ts';

/** What a client asks to be told of, whichever way it came. */
export interface AskedSubscription {
  query: string;
  operationName?: string | null | undefined;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
}

/** A subscription that may begin. */
export interface Prepared extends ExecutionArgs {
  contextValue: Context;
  listening: Listening;
  /** Executes it for an event, once for all who asked for the same. */
  tell: (event: object) => Delivery | Promise<Delivery>;
  /** Called when it has begun, or has failed to. */
  onBegun?: () => void;
}

const { GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED, BAD_USER_INPUT, OPERATION_RESOLUTION_FAILURE, BAD_REQUEST } =
  ApolloServerErrorCode;

/** What an error counts in the memory of refused documents, beside its message. */
const ERROR_SIZE = 2_000;

/** How the log and the metrics name what asks to listen, until its operation is known. */
export const SUBSCRIPTION: Operation = { type: OperationTypeNode.SUBSCRIPTION, label: 'subscription' };

/** Reads subscriptions and holds them to the same rules and limits as Apollo Server holds queries to. */
export class Subscriptions {
  private readonly rules;
  private readonly held: HeldDocuments;
  private readonly deliveries = new Deliveries();
  private readonly refused = refusalsByText((faults: readonly Fault[]) =>
    faults.reduce((sum, { message }) => sum + message.length + ERROR_SIZE, 0),
  );

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly services: Services,
    private readonly operations: Operations,
  ) {
    const { config } = services;
    this.held = new HeldDocuments(config.maxSubscriptionsPerAddress);
    this.rules = [...specifiedRules, ...validationRules(config)];
  }

  /**
   * What is to be executed, until the listening ends; or why it cannot be. Throws UNAVAILABLE where all subscriptions together hold too
   * much, and RATE_LIMITED where those from the same network do.
   */
  prepare(ctx: Context, { query, operationName, variables }: AskedSubscription, listening: Listening): Prepared | readonly GraphQLError[] {
    const document = this.read(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (!operation) return [refusal('The document has no such operation, or several and none is named', OPERATION_RESOLUTION_FAILURE)];
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION) {
      return [refusal('Only subscriptions are served here: send queries and mutations as HTTP requests for JSON', BAD_REQUEST)];
    }
    const { errors } = getVariableValues(this.schema, operation.variableDefinitions ?? [], variables ?? {}, {
      maxErrors: MAX_VARIABLE_ERRORS,
    });
    if (errors) return errors.map((error) => coded(error, BAD_USER_INPUT));
    try {
      new Cost(this.schema, document, operation, this.services.config.graphqlLimits.cost).refuseDear(variables ?? {});
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      if (error instanceof DomainError) return [new GraphQLError(error.message, { originalError: error })];
      throw error;
    }
    const declared = declaredBy(operation, variables ?? {});
    const asked = JSON.stringify([operationName, declared]);
    listening.onGiveUp(this.held.hold(ctx.network ?? '', query, document, asked.length));
    const seen = seenOf(ctx);
    if (seen) seen.operation = this.operations.of(operation);
    const args: ExecutionArgs = { schema: this.schema, document, operationName, variableValues: declared };
    const key = createHash('sha256').update(asked).update(query).digest('base64');
    return {
      ...args,
      contextValue: ctx,
      listening,
      tell: (event) => this.deliveries.of(key, event, () => this.execute(args, event)),
    };
  }

  // For nobody: what one subscriber may see, the others are told too.
  private async execute(args: ExecutionArgs, event: object): Promise<Delivery> {
    const { data, errors } = await execute({ ...args, rootValue: event });
    const formatted = errors && formatErrors(this.services, errors);
    return { text: JSON.stringify({ errors: formatted, data }), errors: formatted, ...cursorIn(event) };
  }

  private read(text: string): DocumentNode | readonly GraphQLError[] {
    const held = this.held.get(text);
    if (held) return held;
    const known = this.refused.get(text);
    if (known) return known.map(errorOf);
    const document = this.parsed(text);
    const errors = document instanceof GraphQLError ? [document] : this.faultsOf(document);
    if (!(document instanceof GraphQLError) && errors.length === 0) return document;
    const faults = errors.map((error) => faultOf(error, this.services.config.explorer));
    this.refused.set(text, faults);
    return faults.map(errorOf);
  }

  private faultsOf(document: DocumentNode): readonly GraphQLError[] {
    const conditional = conditionalFaults(this.schema, document);
    const faults = conditional.length > 0 ? conditional : validate(this.schema, document, this.rules, { maxErrors: MAX_VALIDATION_ERRORS });
    return faults.map((fault) => coded(fault, GRAPHQL_VALIDATION_FAILED));
  }

  private parsed(text: string): DocumentNode | GraphQLError {
    try {
      return parse(text, { maxTokens: this.services.config.graphqlLimits.tokens });
    } catch (error) {
      if (error instanceof GraphQLError) return coded(error, GRAPHQL_PARSE_FAILED);
      throw error;
    }
  }
}

/**
 * Begins what was prepared: its answers, one for each event, until it is ended. Where it is ended with a refusal, that is thrown at the end. Where it cannot begin, the
 * one answer says why.
 */
export async function begin(prepared: Prepared): Promise<AsyncGenerator<Delivery, void> | ExecutionResult> {
  const { listening } = prepared;
  const source = await createSourceEventStream(prepared).finally(prepared.onBegun);
  if (Symbol.asyncIterator in source) return endedBy(deliveries(prepared, source), () => listening.end());
  // What was asked of the database for it fails then, too.
  const { refusal: why } = listening;
  return why ? { errors: [new GraphQLError(why.message, { originalError: why })] } : source;
}

async function* deliveries(prepared: Prepared, source: AsyncIterable<unknown>): AsyncGenerator<Delivery, void> {
  const { listening, tell } = prepared;
  try {
    for await (const event of source) {
      const delivery = await tell(event as object);
      if (delivery.errors && listening.seen) noteErrors(listening.seen, delivery.errors);
      yield delivery;
    }
    if (listening.refusal) throw listening.refusal;
  } catch (error) {
    // What was given up fails because of that.
    if (listening.refusal) throw listening.refusal;
    if (!listening.isGivenUp) throw error;
  } finally {
    listening.end();
  }
}

// A generator that waits for its next event would first wait for it, and only then end.
function endedBy<T>(generator: AsyncGenerator<T, void>, end: () => void): AsyncGenerator<T, void> {
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

// What else there is among variables is of no use, and of no type that would bound it.
function declaredBy(
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

function refusal(message: string, code: ApolloServerErrorCode): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

/** What is remembered of an error in a document. An Error would retain all that its stack leads to, such as the connection. */
interface Fault {
  message: string;
  locations: GraphQLError['locations'];
  extensions: Readonly<Record<string, unknown>>;
  /** The code of the DomainError that caused the error. */
  code: ErrorCode | undefined;
}

function faultOf({ message, locations, originalError, extensions }: GraphQLError, isExplorer: boolean): Fault {
  return {
    message: told(message, isExplorer),
    locations: locations?.map(({ line, column }) => ({ line, column })),
    extensions: { ...extensions },
    code: originalError instanceof DomainError ? originalError.code : undefined,
  };
}

function errorOf({ message, locations, extensions, code }: Fault): GraphQLError {
  const originalError = code && new DomainError(code, message);
  return Object.assign(new GraphQLError(message, { extensions: { ...extensions }, originalError }), { locations });
}

function coded(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}
