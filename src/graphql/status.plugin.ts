import type {
  ApolloServerPlugin,
  GraphQLRequestContextWillSendResponse,
  GraphQLRequestListener,
} from '@apollo/server';
import { Kind, OperationTypeNode, type OperationDefinitionNode } from 'graphql';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { graphqlTypeFor, JSON_TYPE } from '../http/responses.ts';

const QUERY_ERRORS = new Set<unknown>([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'BAD_USER_INPUT',
  'OPERATION_RESOLUTION_FAILURE',
]);
/** Transient errors. The response is 503 if they leave no data. */
const TRANSIENT = new Set<unknown>(['UNAVAILABLE', 'TIMEOUT']);

type Answered = GraphQLRequestContextWillSendResponse<Context>;

const listener: GraphQLRequestListener<Context> = {
  willSendResponse: async (request) => {
    const { body, http } = request.response;
    if (body.kind !== 'single' || !body.singleResult.errors) return;
    if (http.status === 400 && isLegacy(request) && isOfQuery(request)) http.status = 200;
    else if (isUnavailable(request)) sendUnavailable(request);
  },
};

/**
 * Sets statuses that Apollo Server does not. 200 instead of 400 for an invalid query if the client
 * accepts `application/json` without a wildcard: for legacy clients, the status says only whether
 * the server was reached (GraphQL over HTTP, 6.4.1). 503 with `Retry-After` for an operation that
 * read nothing because the database is unavailable, so that clients that only check the status
 * retry. Partial data is returned.
 */
export const statusPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => listener,
};

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

function isUnavailable({ operation, response: { body } }: Answered): boolean {
  if (body.kind !== 'single' || (operation && mayHavePartialEffects(operation))) return false;
  const { errors = [], data } = body.singleResult;
  return (
    errors.every(({ extensions }) => TRANSIENT.has(extensions?.['code'])) &&
    Object.values(data ?? {}).every((value) => value === null)
  );
}

// The fields of a mutation run one after another. An error does not roll back the previous fields.
function mayHavePartialEffects({
  operation,
  selectionSet: { selections },
}: OperationDefinitionNode): boolean {
  return (
    operation === OperationTypeNode.MUTATION &&
    (selections.length > 1 || selections[0]?.kind !== Kind.FIELD)
  );
}

function sendUnavailable({ response: { body, http }, contextValue: { log, request } }: Answered) {
  if (body.kind !== 'single') return;
  const [{ message, extensions = {} } = { message: '' }] = body.singleResult.errors ?? [];
  // At its own time limit, a statement ends shortly before or after its request.
  if (extensions['code'] === 'TIMEOUT' && request?.signal.aborted !== true)
    log.warn({ event: 'request.timeout' }, 'Request timed out');
  http.status = 503;
  const { retryAfter = 1 } = extensions as { retryAfter?: number };
  http.headers.set('retry-after', String(retryAfter));
  body.singleResult = { errors: [{ message, extensions }] };
}
