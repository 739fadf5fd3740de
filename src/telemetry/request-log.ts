import type { DestinationStream } from 'pino';
import type { Observer, RequestRecord } from './request-record.ts';

const INFO = 30;
const MESSAGES: Record<RequestRecord['end'], string> = {
  answered: 'Request completed',
  aborted: 'Connection closed before the response was complete',
  broken: 'Response interrupted',
};

/**
 * Returns an observer that writes a log line for each completed request. Builds the line without
 * pino and the redaction of secrets, which take ten times as long. The line must therefore contain
 * only members of `RequestRecord`, which are never secret.
 */
export function requestLog(destination: DestinationStream): Observer {
  const timeOf = clock();
  return (
    { requestId, traceId, method, api, endpoint, operation, user, status, errors, bytes, end },
    ms,
  ) => {
    destination.write(
      `{"level":${INFO},"time":"${timeOf()}","event":"request","requestId":"${requestId}",` +
        `${traceId === undefined ? '' : `"traceId":"${traceId}",`}"method":"${method}","api":"${api}",` +
        `${endpoint === undefined ? '' : `"endpoint":"${endpoint}",`}${operation ? operationText(operation) : ''}` +
        `${status === undefined ? '' : `"status":${status},`}${errors ? `"errors":${JSON.stringify(errors)},` : ''}` +
        `${end === 'answered' ? '' : `"end":"${end}",`}"user":${user === undefined ? 'null' : JSON.stringify(user)},` +
        `"ms":${ms.toFixed(3)},"bytes":${bytes},"msg":"${MESSAGES[end]}"}\n`,
    );
  };
}

function operationText({ name, type }: NonNullable<RequestRecord['operation']>): string {
  return `${name === undefined ? '' : `"operation":"${name}",`}"type":"${type}",`;
}

// Caches the text, because many requests complete in the same millisecond.
function clock(): () => string {
  let [at, text] = [0, ''];
  return () => {
    const now = Date.now();
    if (now !== at) [at, text] = [now, new Date(now).toISOString()];
    return text;
  };
}
