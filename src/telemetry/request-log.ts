import type { DestinationStream, Logger } from 'pino';
import type { Observer, Seen } from './request-record.ts';

const INFO = 30;
const MESSAGES: Record<Seen['end'], string> = {
  answered: 'a request was answered',
  aborted: 'a client left before its answer',
  broken: 'an answer was cut short',
};

/**
 * Writes a line for each request that is over, in the form of the log's other lines. It is put together here, for pino and what looks every
 * line through for secrets take ten times as long: so nothing goes into it but what `Seen` promises to be harmless.
 */
export function requestLog(log: Logger, destination: DestinationStream): Observer {
  if (!log.isLevelEnabled('info')) return () => undefined;
  const timeOf = clock();
  return ({ requestId, traceId, method, door, row, operation, user, status, errors, bytes, end }, ms) => {
    destination.write(
      `{"level":${INFO},"time":"${timeOf()}","event":"request","requestId":"${requestId}",` +
        `${traceId === undefined ? '' : `"traceId":"${traceId}",`}"method":"${method}","door":"${door}",` +
        `${row === undefined ? '' : `"row":"${row}",`}${operation ? operationText(operation) : ''}` +
        `${status === undefined ? '' : `"status":${status},`}${errors ? `"errors":${JSON.stringify(errors)},` : ''}` +
        `${end === 'answered' ? '' : `"end":"${end}",`}"user":${user === undefined ? 'null' : JSON.stringify(user)},` +
        `"ms":${ms.toFixed(3)},"bytes":${bytes},"msg":"${MESSAGES[end]}"}\n`,
    );
  };
}

function operationText({ name, type }: NonNullable<Seen['operation']>): string {
  return `${name === undefined ? '' : `"operation":"${name}",`}"type":"${type}",`;
}

// Many requests are over in the same millisecond.
function clock(): () => string {
  let [at, text] = [0, ''];
  return () => {
    const now = Date.now();
    if (now !== at) [at, text] = [now, new Date(now).toISOString()];
    return text;
  };
}
