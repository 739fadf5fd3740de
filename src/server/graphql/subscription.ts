import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  createSourceEventStream,
  execute,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
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
import type { Config } from '../../kit/config.ts';
import { changed, type Context } from '../../kit/context.ts';
import { DomainError } from '../../kit/errors.ts';
import { seenOf } from '../services.ts';
import type { Operations } from '../telemetry/operations.ts';
import type { Operation } from '../telemetry/seen.ts';
import { Cost } from './cost.ts';
import { HeldDocuments } from './held-documents.ts';
import { limitRules } from './limits.ts';
import type { Listening } from './listening.ts';
import { conditionalFaults } from './conditions.ts';

/** What a client asks to be told of, whichever way it came. */
export interface AskedSubscription {
  query: string;
  operationName?: string | null | undefined;
  variables?: Readonly<Record<string, unknown>> | null | undefined;
}

/** One answer to a subscription. */
export interface Delivery extends ExecutionResult {
  /** Where a client that was interrupted can go on, if it can. */
  id?: string;
}

/** A subscription that may begin. */
export interface Prepared extends ExecutionArgs {
  contextValue: Context;
  listening: Listening;
}

const { GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED, BAD_USER_INPUT, OPERATION_RESOLUTION_FAILURE, BAD_REQUEST } =
  ApolloServerErrorCode;

/** How the log and the metrics name what asks to listen, until its operation is known. */
export const SUBSCRIPTION: Operation = { type: OperationTypeNode.SUBSCRIPTION, label: 'subscription' };

/** Reads subscriptions and holds them to the same rules and limits as Apollo Server holds queries to. */
export class Subscriptions {
  private readonly rules;
  private readonly held = new HeldDocuments();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly config: Pick<Config, 'graphqlLimits' | 'explorer'>,
    private readonly operations: Operations,
  ) {
    this.rules = [...specifiedRules, ...limitRules(config.graphqlLimits), ...(config.explorer ? [] : [NoSchemaIntrospectionCustomRule])];
  }

  /**
   * What is to be executed, until the listening ends; or why it cannot be. The length is that of all that the client has sent for it. Throws UNAVAILABLE where all
   * subscriptions together hold too much.
   */
  prepare(
    ctx: Context,
    { query, operationName, variables }: AskedSubscription,
    listening: Listening,
    length: number,
  ): Prepared | readonly GraphQLError[] {
    const document = this.read(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (!operation) return [refusal('The document has no such operation, or several and none is named', OPERATION_RESOLUTION_FAILURE)];
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION) {
      return [refusal('Only subscriptions are served here: send queries and mutations as HTTP requests for JSON', BAD_REQUEST)];
    }
    const { errors } = getVariableValues(this.schema, operation.variableDefinitions ?? [], variables ?? {});
    if (errors) return errors.map((error) => coded(error, BAD_USER_INPUT));
    try {
      new Cost(this.schema, document, operation, this.config.graphqlLimits.cost).refuseDear(variables ?? {});
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      if (error instanceof DomainError) return [new GraphQLError(error.message, { originalError: error })];
      throw error;
    }
    // Of the same text, each has a copy of its own.
    listening.onGiveUp(this.held.hold(query, document, length));
    const seen = seenOf(ctx);
    if (seen) seen.operation = this.operations.of(operation);
    return {
      schema: this.schema,
      document,
      operationName,
      variableValues: declaredBy(operation, variables ?? {}),
      contextValue: ctx,
      listening,
    };
  }

  private read(text: string): DocumentNode | readonly GraphQLError[] {
    const known = this.held.get(text);
    if (known) return known;
    const document = this.parsed(text);
    if (document instanceof GraphQLError) return [document];
    const conditional = conditionalFaults(this.schema, document);
    const faults = conditional.length > 0 ? conditional : validate(this.schema, document, this.rules);
    return faults.length === 0 ? document : faults.map((fault) => coded(fault, GRAPHQL_VALIDATION_FAILED));
  }

  private parsed(text: string): DocumentNode | GraphQLError {
    try {
      return parse(text, { maxTokens: this.config.graphqlLimits.tokens });
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
export async function begin(prepared: Prepared): Promise<AsyncGenerator<Delivery, void> | Delivery> {
  const { listening } = prepared;
  const source = await createSourceEventStream(prepared);
  if (Symbol.asyncIterator in source) return endedBy(deliveries(prepared, source), () => listening.end());
  // What was asked of the database for it fails then, too.
  const { refusal: why } = listening;
  return why ? { errors: [new GraphQLError(why.message, { originalError: why })] } : source;
}

async function* deliveries(prepared: Prepared, source: AsyncIterable<unknown>): AsyncGenerator<Delivery, void> {
  const { listening } = prepared;
  try {
    for await (const event of source) {
      // What loaders hold is of one moment.
      const contextValue = changed(prepared.contextValue, { loaders: new Map() });
      const result = await execute({ ...prepared, rootValue: event, contextValue });
      yield { ...result, ...cursorIn(event) };
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

function cursorIn(event: unknown): { id?: string } {
  const cursor = typeof event === 'object' && event !== null && 'cursor' in event ? event.cursor : undefined;
  return typeof cursor === 'string' ? { id: cursor } : {};
}

function refusal(message: string, code: ApolloServerErrorCode): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

function coded(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}
