import type {
  ApolloServerPlugin,
  GraphQLRequestContextWillSendResponse,
  GraphQLRequestListener,
} from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, Kind, OperationTypeNode, type OperationDefinitionNode } from 'graphql';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { recordOf } from '../http/dependencies.ts';
import { graphqlTypeFor } from '../http/error-response.ts';
import { JSON_TYPE } from '../http/responses.ts';
import type { Operations } from '../telemetry/operations.ts';
import { recordErrors, type Operation } from '../telemetry/request-record.ts';
import { Cost } from './cost.ts';
import { requestError } from './errors.ts';

const QUERY_ERRORS = new Set<unknown>([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'BAD_USER_INPUT',
  'OPERATION_RESOLUTION_FAILURE',
]);
/** Transient errors. The response is 503 if they leave no data. */
const TRANSIENT = new Set<unknown>(['UNAVAILABLE', 'TIMEOUT']);

type Answered = GraphQLRequestContextWillSendResponse<Context>;

/**
 * Adds the operation, the user and the error codes to the request record. Rejects subscriptions,
 * with an error that names their transports, and operations that cost more than GRAPHQL_MAX_COST.
 * Returns the cost with its limit to requests with `"extensions": {"cost": true}`.
 *
 * Sets statuses that Apollo Server does not. 200 instead of 400 for an invalid query if the client
 * accepts `application/json` without a wildcard: for legacy clients, the status says only whether
 * the server was reached (GraphQL over HTTP, 6.4.1). 503 with `Retry-After` for an operation that
 * read nothing because the database is unavailable, so that clients that only check the status
 * retry. Partial data is returned.
 */
export function operationPlugin(
  operations: Operations,
  maxCost: number,
): ApolloServerPlugin<Context> {
  /** Names and costs of operations, while their documents are cached. */
  const known = new WeakMap<OperationDefinitionNode, { named: Operation; cost: Cost }>();
  const listener: GraphQLRequestListener<Context> = {
    didResolveOperation: async ({ schema, document, operation, request, contextValue }) => {
      // Execution rejects a request without an operation.
      if (!operation) return;
      let facts = known.get(operation);
      if (!facts) {
        const cost = new Cost(schema, document, operation, maxCost);
        known.set(operation, (facts = { named: operations.of(operation), cost }));
      }
      const record = recordOf(contextValue);
      if (record) record.operation = facts.named;
      if (operation.operation === OperationTypeNode.SUBSCRIPTION)
        throw new GraphQLError(
          'Subscriptions need server-sent events (Accept: text/event-stream) or a WebSocket',
          { extensions: { code: ApolloServerErrorCode.BAD_REQUEST, http: { status: 400 } } },
        );
      const error = facts.cost.errorFor(request.variables ?? {});
      if (error) throw requestError(error);
    },
    willSendResponse: async (answered) => {
      const { contextValue, response, operation, request } = answered;
      if (response.body.kind !== 'single') return;
      const { singleResult } = response.body;
      const record = recordOf(contextValue);
      if (record && singleResult.errors) recordErrors(record, singleResult.errors);
      if (singleResult.errors) setStatus(answered);
      const cost = operation && known.get(operation)?.cost;
      if (cost && request.extensions?.['cost'] === true)
        singleResult.extensions = {
          cost: { requested: costOf(cost, request.variables), limit: maxCost },
        };
    },
  };
  return { requestDidStart: async () => listener };
}

function costOf(cost: Cost, variables: Readonly<Record<string, unknown>> = {}): number | null {
  try {
    return cost.of(variables) ?? null;
  } catch {
    return null;
  }
}

function setStatus(answered: Answered): void {
  const { http } = answered.response;
  if (http.status === 400 && isLegacy(answered) && isOfQuery(answered)) http.status = 200;
  else reportUnavailable(answered);
}

function isLegacy({ request: { http } }: Answered): boolean {
  const accept = http?.headers.get('accept');
  return (
    !!accept && !accept.includes('/*') && graphqlTypeFor({ headers: { accept } }) === JSON_TYPE
  );
}

// Exceeded limits are not query errors in the sense of the specification.
function isOfQuery({ errors = [] }: Answered): boolean {
  return errors.every(
    ({ extensions, originalError }) =>
      QUERY_ERRORS.has(extensions['code']) && !(originalError instanceof DomainError),
  );
}

// The fields of a mutation run one after another. An error does not roll back the previous fields.
function reportUnavailable({ operation, contextValue, response: { body, http } }: Answered): void {
  if (body.kind !== 'single') return;
  const { errors = [], data } = body.singleResult;
  const [first, ...others] = operation?.selectionSet.selections ?? [];
  const isOnlyField = others.length === 0 && first?.kind === Kind.FIELD;
  const isTransient = errors.every(({ extensions }) => TRANSIENT.has(extensions?.['code']));
  const isEmpty = Object.values(data ?? {}).every((value) => value === null);
  const isMutation = operation?.operation === OperationTypeNode.MUTATION;
  if ((isMutation && !isOnlyField) || !isTransient || !isEmpty) return;
  http.status = 503;
  http.headers.set('retry-after', '1');
  // Nothing was executed as far as the client is concerned, so the error has no path.
  const [{ message, extensions = {} } = { message: '' }] = errors;
  // At its own time limit, a statement ends shortly before or after its request.
  if (extensions['code'] === 'TIMEOUT' && contextValue.request?.signal.aborted !== true)
    contextValue.log.warn({ event: 'request.timeout' }, 'Request timed out');
  body.singleResult = { errors: [{ message, extensions }] };
}
