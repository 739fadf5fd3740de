import {
  HeaderMap,
  type GraphQLRequestContext,
  type GraphQLRequestContextDidResolveOperation,
  type GraphQLRequestListener,
} from '@apollo/server';
import {
  execute,
  getVariableValues,
  GraphQLError,
  Kind,
  locatedError,
  OperationTypeNode,
  type FieldNode,
  type FormattedExecutionResult,
} from 'graphql';
import { z } from 'zod';
import { idempotencyKey, idempotent } from '../features/idempotency/idempotency.service.ts';
import type { Context } from '../request/context.ts';
import { badInput } from '../core/errors.ts';
import { IGNORES_IDEMPOTENCY_KEY } from '../api/ignores-idempotency-key.ts';
import { isConflict } from '../database/kysely.ts';
import { check } from '../core/validation.ts';
import type { Dependencies } from '../http/dependencies.ts';
import { formatErrors, requestError } from './errors.ts';
import { fragmentsOf, selectionsIn } from './documents.ts';

const NAME = 'idempotency-key';
const headers = z.object({ [NAME]: idempotencyKey });

/** Thrown to roll back a failed mutation. */
class Failed extends Error {
  constructor(readonly errors: readonly GraphQLError[]) {
    super('The mutation failed');
  }
}

/**
 * Executes a mutation with this `Idempotency-Key` in one transaction with its key and response. A
 * repetition of the request gets the stored response.
 */
export function idempotencyListener(
  dependencies: Dependencies,
  key: string,
): GraphQLRequestListener<Context> {
  /** The parts of the field that the mutation consists of; none for other requests. */
  let field: readonly FieldNode[] = [];
  return {
    didResolveOperation: async (request) => {
      try {
        field = keyedField(key, request);
      } catch (error) {
        throw requestError(error);
      }
    },
    responseForOperation: async (request) => {
      const [first] = field;
      const singleResult = first && (await answer(dependencies, request, key, first));
      return singleResult
        ? { http: { headers: new HeaderMap() }, body: { kind: 'single', singleResult } }
        : null;
    },
  };
}

/**
 * Returns the parts of the field of a mutation with this header; none for other requests. Throws
 * BAD_USER_INPUT for a malformed key, and for a key for several mutations.
 */
function keyedField(
  key: string,
  { contextValue, schema, document, operation }: GraphQLRequestContextDidResolveOperation<Context>,
): readonly FieldNode[] {
  if (operation?.operation !== OperationTypeNode.MUTATION) return [];
  const mutations = schema.getMutationType()?.getFields() ?? {};
  const fragments = fragmentsOf(document);
  const fields = [...selectionsIn(operation.selectionSet, (name) => fragments.get(name))]
    .filter((part) => part.kind === Kind.FIELD)
    .filter(({ name }) => name.value in mutations);
  if (
    fields.every(({ name }) => mutations[name.value]?.extensions[IGNORES_IDEMPOTENCY_KEY] === true)
  )
    return [];
  // Also with a login, after which the others run as its user.
  if (new Set(fields.map(responseName)).size > 1)
    throw badInput(NAME, 'The header requires a single mutation in the request');
  // Callers without any scope write nothing, and are rejected without a transaction.
  if (!contextValue.caller && contextValue.config.anonymousScopes.length === 0) return [];
  check(headers, { [NAME]: key }, 'header');
  return fields;
}

/** Returns the response; undefined for invalid variables, which Apollo Server then rejects. */
async function answer(
  dependencies: Dependencies,
  request: GraphQLRequestContext<Context>,
  key: string,
  field: FieldNode,
): Promise<FormattedExecutionResult | undefined> {
  const { contextValue, schema, document, operation, source } = request;
  const { variables = {}, operationName } = request.request;
  if (!document || !operation) return undefined;
  const { variableDefinitions = [] } = operation;
  if (!getVariableValues(schema, variableDefinitions, variables, { maxErrors: 1 }).coerced)
    return undefined;
  const input = ['graphql', rightsOf(contextValue), source, operationName ?? null, variables];
  try {
    const data = await idempotent(contextValue, key, input, async (tx) => {
      const result = await execute({
        schema,
        document,
        contextValue: tx,
        variableValues: variables,
        operationName,
      });
      if (result.errors) throw causeOf(result.errors);
      // As text, because `jsonb` reorders the members of an object.
      return JSON.stringify(result.data);
    });
    return { data: JSON.parse(data) as Record<string, unknown> };
  } catch (error) {
    const errors =
      error instanceof Failed
        ? error.errors
        : [locatedError(error, [field], [responseName(field)])];
    return { errors: formatErrors(dependencies, errors), data: null };
  }
}

// A conflict of transactions is thrown as it is, so that the transaction is retried.
function causeOf(errors: readonly GraphQLError[]): Error {
  return (
    errors.map(({ originalError }) => originalError).find((cause) => cause && isConflict(cause)) ??
    new Failed(errors)
  );
}

// A stored response is only returned to credentials with the same rights, because it may contain
// what other credentials must not see.
function rightsOf({ caller, config }: Context): unknown {
  return {
    scopes: [...(caller?.scopes ?? config.anonymousScopes)].toSorted(),
    isReadOnly: caller?.isReadOnly === true,
    apiKey: caller?.apiKeyId ?? null,
  };
}

function responseName({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}
