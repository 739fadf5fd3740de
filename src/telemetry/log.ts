import { format } from 'node:util';
import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { redactor, type Secrets } from '../core/redact.ts';

/** Standard error: standard output holds only what was asked for. */
export const STDERR = 2;

/** The log: one JSON line an event. Without a destination, each is written at once to standard error. */
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

/** Makes log events of what libraries write with `console.warn` and `console.error`, and of Node's warnings, from now on. */
export function logConsole(log: Logger): void {
  console.warn = (...args) => log.warn({ event: 'console' }, format(...args));
  console.error = console.warn;
  process.removeAllListeners('warning');
  process.on('warning', (warning) => log.warn({ event: 'console', err: warning }, 'Node.js warning'));
}

// An error's own members may hold values that were on their way into the database, and the ORM puts the statement with
// its values before the message. What is logged is the driver's message, its code, and where it happened.
function errorFacts(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: typeof error };
  const cause = 'previous' in error && error.previous instanceof Error ? error.previous : error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { type: error.name, ...('code' in cause && { code: cause.code }), message: cause.message, at: frames.map((line) => line.trim()) };
}
