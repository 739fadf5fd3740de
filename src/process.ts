import { setTimeout } from 'node:timers/promises';
import type { DestinationStream } from 'pino';
import { startupBanner } from './cli/startup-banner.ts';
import { ConfigError, readConfig, type Config } from './core/config.ts';
import { newerSource } from './core/outdated-build.ts';
import { redactor } from './core/redact.ts';
import { onSignals } from './core/signals.ts';
import { embeddedSigningSecret } from './core/signing-secret.ts';
import { measureHash } from './features/auth/passwords/hashing.ts';
import { trustedDocuments } from './graphql/trusted-documents.ts';
import { Server } from './server.ts';
import { LogDestination } from './telemetry/request-log.ts';
import { logConsole, openLog, STDERR } from './telemetry/log.ts';

const EXIT_CONFIG = 78; // EX_CONFIG of sysexits(3)

/** Runs the server with the settings of the environment until a signal ends the process. */
export async function runProcess(): Promise<void> {
  const config = readConfigOrExit();
  const isPretty =
    config.logFormat === 'pretty' || (config.logFormat === 'auto' && process.stderr.isTTY);
  const destination = isPretty ? await prettyDestination() : new LogDestination(STDERR);
  const log = openLog(config, destination);
  const server = new Server(config, log, destination);

  let isStopping = false;
  // Completes received requests, then exits. A second signal or the timeout exits at once.
  const shutDown = async () => {
    if (isStopping) return;
    isStopping = true;
    void setTimeout(config.shutdownTimeoutSeconds * 1000, undefined, { ref: false }).then(() => {
      log.error('Shutdown exceeded SHUTDOWN_TIMEOUT_SECONDS; pending requests aborted');
      process.exit(1);
    });
    await server.stop();
    process.exit(process.exitCode ?? 0);
  };
  onSignals(
    ['SIGTERM', 'SIGINT'],
    () => (isStopping ? process.exit(1) : void shutDown()),
    () => process.exit(1),
  );
  // The state is unknown: completes received requests and lets the supervisor restart the process.
  process.once('uncaughtException', (error) => {
    log.fatal({ err: error }, 'Uncaught exception');
    process.exitCode = 1;
    void shutDown();
  });
  try {
    await server.start();
  } catch (error) {
    // The stop closes what the start needs, and exits.
    if (isStopping) return;
    process.exitCode = report(error, redactor(config));
    await shutDown();
  }
  // A signal may have arrived before.
  if (isStopping) return;
  console.log(startupBanner(config, server.port));
  logConsole(log);
  const source = newerSource();
  if (source !== undefined)
    log.warn(
      { event: 'build.outdated', source },
      `${source} is newer than the build; run npm run build`,
    );
  const ms = await measureHash({ config });
  log.info({ event: 'auth.hash_cost', cost: config.bcryptCost, ms }, 'Cost of a password hash');
}

function readConfigOrExit(): Config {
  try {
    const parsed = readConfig(process.env, ({ databaseUrl, dataDir }) =>
      databaseUrl === undefined ? embeddedSigningSecret(dataDir) : undefined,
    );
    // Checked before the database starts. The app reads the documents later.
    trustedDocuments(parsed);
    return parsed;
  } catch (error) {
    return process.exit(report(error));
  }
}

// Prints the error. Returns the exit code.
function report(error: unknown, redact = (text: string) => text): number {
  console.error(redact(error instanceof Error ? error.message : String(error)));
  return error instanceof ConfigError ? EXIT_CONFIG : 1;
}

// For people. Loaded only if needed.
async function prettyDestination(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  return pretty({ destination: STDERR, sync: true, ignore: 'event', singleLine: true });
}
