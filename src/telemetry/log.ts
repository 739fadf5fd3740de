import { format } from 'node:util';
import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { redactor, type Secrets } from '../core/redact.ts';

/** Standard error. Standard output has only requested output. */
export const STDERR = 2;

/** Opens the log: one JSON line per event. By default, writes each at once to standard error. */
export function openLog(
  { logLevel, ...secrets }: Pick<Config, 'logLevel'> & Secrets,
  destination: DestinationStream = pino.destination({ fd: STDERR, sync: true }),
): Logger {
  return pino(
    {
      level: logLevel,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: errorFacts },
      hooks: { streamWrite: redactor(secrets) },
    },
    destination,
  );
}

/** Logs the output of `console.warn` and `console.error`, and Node's warnings, as events. */
export function logConsole(log: Logger): void {
  console.warn = (...args) => log.warn({ event: 'console' }, format(...args));
  console.error = console.warn;
  process.removeAllListeners('warning');
  process.on('warning', (warning) =>
    log.warn({ event: 'console', err: warning }, 'Node.js warning'),
  );
}

// Logs only the driver's message, its code and the stack, because an error's own members may
// contain values written to the database, and the ORM prepends the statement with its values to the
// message.
function errorFacts(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: typeof error };
  const cause = 'previous' in error && error.previous instanceof Error ? error.previous : error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    type: error.name,
    ...('code' in cause && { code: cause.code }),
    message: cause.message,
    at: frames.map((line) => line.trim()),
  };
}
