import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import options from '../mikro-orm.config.ts';
import { createApp } from './app.ts';
import { measureHash } from './features/auth/passwords/password.ts';
import { openDatabase, type Database } from './database/database.ts';
import { openReplicas, type Replicas } from './database/replicas.ts';
import { seedDemo } from './features/demo-data.ts';
import { embeddedSigningSecret } from './database/embedded/signing-secret.ts';
import { features } from './features.ts';
import { addressOf, ConfigError, readConfig, type Config } from './core/config.ts';
import type { Context } from './request/context.ts';
import { backoff } from './core/backoff.ts';
import { newerSource } from './core/outdated-build.ts';
import { redactor } from './core/redact.ts';
import type { PollingWorker } from './api/polling-worker.ts';
import { onSignals } from './core/signals.ts';
import { CallCounter } from './features/rest-usage/call-counter.ts';
import * as restUsage from './features/rest-usage/rest-usage.service.ts';
import { rejectPending } from './http/request-timeout.ts';
import { trustedDocuments } from './graphql/trusted-documents.ts';
import { stopListening } from './http/drain.ts';
import { createHttpServer } from './http/http-server.ts';
import { admission } from './http/admission.ts';
import { metricsListener, openMetrics } from './http/metrics-listener.ts';
import { startupBanner } from './cli/startup-banner.ts';
import { LogDestination } from './telemetry/log-destination.ts';
import { logConsole, openLog, STDERR } from './telemetry/log.ts';
import type { Dependencies } from './http/dependencies.ts';
import { openObserver } from './telemetry/observers.ts';

const EXIT_CONFIG = 78; // EX_CONFIG of sysexits(3)
const SWEEP_INTERVAL_MS = 30_000;
const STORE_CALLS_INTERVAL_MS = 5_000;
const DELIVERY_INTERVAL_MS = 1_000;

const config = readConfigOrExit();
const isPretty =
  config.logFormat === 'pretty' || (config.logFormat === 'auto' && process.stderr.isTTY);
const logDestination = new LogDestination(
  STDERR,
  // Loaded only if needed.
  isPretty ? (await import('./telemetry/pretty-log.ts')).prettyFormat() : undefined,
);
const log = openLog(config, logDestination);
const redact = redactor(config);
let database: Database | undefined;
let replicas: Replicas | undefined;
let stopping = false;
let draining = false;
let timers: NodeJS.Timeout[] = [];
let storing: Promise<void> | undefined;
let sweeping: Promise<void> | undefined;

// Loaded only if configured, because the tracing libraries load slowly.
const tracing =
  config.otelExporterOtlpEndpoint === undefined
    ? undefined
    : (await import('./http/tracing.ts')).openTracing(config, log);
const dependencies: Dependencies = {
  config,
  log,
  calls: new CallCounter(),
  now: () => new Date(),
  observe: openObserver(config, log, logDestination),
  ...(tracing && { tracing }),
  database: availableDatabase,
  ...(config.databaseReplicaUrls.length > 0 && {
    replica: () => replicas?.choose(),
    replicaWithoutPrimary: () =>
      availableDatabase() ? undefined : replicas?.chooseWithoutPrimary(),
  }),
  isDraining: () => draining,
};
const workers = features.flatMap((feature) => feature.worker?.(config, log) ?? []);
const ready = prepareDatabase();
const app = await createApp(dependencies).catch(exitWithError);
const server = await listen(
  createHttpServer(config, admission(dependencies, app.listener), app.upgrades),
  config.port,
  config.host,
);
const metricsServer = await listenForMetrics();
onSignals(
  ['SIGTERM', 'SIGINT'],
  () => (stopping ? process.exit(1) : void shutDown()),
  () => process.exit(1),
);
// The state is unknown: completes received requests and lets the supervisor restart the process.
process.once('uncaughtException', (error) => {
  log.fatal({ err: error }, 'Uncaught exception');
  process.exitCode = 1;
  void shutDown();
});
await ready;
// A signal may have arrived before.
if (!stopping) serve();

/** Starts the work in the background, and prints the addresses. */
function serve(): void {
  timers = [
    setInterval(sweep, SWEEP_INTERVAL_MS),
    setInterval(storeCalls, STORE_CALLS_INTERVAL_MS),
    ...workers.map((worker) => setInterval(() => void deliver(worker), DELIVERY_INTERVAL_MS)),
  ];
  for (const timer of timers) timer.unref();
  console.log(startupBanner(config, (server.address() as AddressInfo).port));
  logConsole(log);
  if (config.linksToLocalhost) {
    const { publicUrl } = config;
    log.warn(
      { event: 'config.public_url', publicUrl },
      'Links point to localhost; set PUBLIC_URL to the address that clients use',
    );
  }
  const source = newerSource();
  if (source !== undefined)
    log.warn(
      { event: 'build.outdated', source },
      `${source} is newer than the build; run npm run build`,
    );
  void measureHash({ config }).then((ms) =>
    log.info({ event: 'auth.hash_cost', cost: config.bcryptCost, ms }, 'Cost of a password hash'),
  );
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
    return exitWithError(error);
  }
}

function exitWithError(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
}

async function prepareDatabase(): Promise<void> {
  try {
    const opened = await openDatabase(config, options, log);
    await waitForDatabase(opened);
    if (config.databaseUrl === undefined) await prepareEmbedded(opened);
    else await opened.rejectPendingMigrations();
    if (config.databaseReplicaUrls.length > 0)
      replicas = openReplicas(config, opened.statements, log);
    database = opened;
    opened.watch(onHealthChange);
  } catch (error) {
    console.error(redact(error instanceof Error ? error.message : String(error)));
    process.exit(1);
  }
}

function availableDatabase(): Database | undefined {
  return database?.isHealthy ? database : undefined;
}

// Requests that wait for an unavailable database would otherwise wait until their timeouts.
function onHealthChange(isAnswering: boolean): void {
  if (isAnswering) return;
  const rejected = rejectPending();
  if (rejected > 0)
    log.warn({ requests: rejected }, 'Database unavailable; pending requests rejected');
}

// Waits for the database to start. Throws if it rejects the connection.
async function waitForDatabase(opened: Database): Promise<void> {
  for (const pause of backoff()) {
    try {
      return await opened.ping();
    } catch (error) {
      if (isConnectionRejected(error)) throw error;
      log.warn({ err: error }, 'Database unavailable; retrying');
    }
    await setTimeout(pause);
  }
}

// PostgreSQL's class 28 (wrong user or password) and 3D000 (no such database).
function isConnectionRejected(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(28...|3D000)$/.test(String(error.code));
}

async function prepareEmbedded(opened: Database): Promise<void> {
  await opened.migrate();
  const em = opened.fork();
  const rows: unknown[] = await em.execute('select 1 from "user" limit 1');
  if (rows.length === 0) await seedDemo(em, config.bcryptCost, new Date(), true);
}

function listen(httpServer: Server, port: number, host: string): Promise<Server> {
  return new Promise((done) => {
    const exitOnError = (error: Error) => {
      console.error(`Cannot listen on ${addressOf(host)}:${port}: ${error.message}`);
      process.exit(1);
    };
    httpServer.once('error', exitOnError);
    httpServer.listen(port, host, () => {
      httpServer.off('error', exitOnError);
      // For example, too many open files to accept a connection.
      httpServer.on('error', (error) => log.error({ err: error }, 'HTTP server error'));
      done(httpServer);
    });
  });
}

async function listenForMetrics(): Promise<Server | undefined> {
  if (config.metricsPort === undefined) return undefined;
  const answer = metricsListener(openMetrics(dependencies), dependencies);
  return listen(createHttpServer(config, answer), config.metricsPort, config.metricsHost);
}

function sweep(): Promise<void> {
  sweeping ??= sweepAll().finally(() => (sweeping = undefined));
  return sweeping;
}

// An error of one feature does not stop the others.
async function sweepAll(): Promise<void> {
  for (const feature of features) {
    const ctx = contextFor('sweep');
    if (!ctx || stopping) return;
    try {
      await feature.sweep?.(ctx);
    } catch (error) {
      log.error({ err: error }, 'Expired rows could not be deleted');
    }
  }
}

// The next run retries after any error.
async function deliver(worker: PollingWorker): Promise<void> {
  try {
    await worker.poll(() => contextFor(worker.jobs));
  } catch (error) {
    log.warn({ err: error }, `Delivery of ${worker.jobs} failed; retrying`);
  }
}

// Calls that cannot be stored stay in the counter until the next attempt.
function storeCalls(): Promise<void> {
  storing ??= writeCalls().finally(() => (storing = undefined));
  return storing;
}

async function writeCalls(): Promise<void> {
  const ctx = contextFor('calls');
  if (!ctx) return;
  try {
    await restUsage.store(ctx, dependencies.calls);
  } catch (error) {
    log.error({ err: error }, 'REST calls could not be stored; retrying');
  }
}

// Stores again after a pending attempt, because more calls have arrived since.
async function storeLastCalls(): Promise<void> {
  await storing;
  await storeCalls();
  const lost = dependencies.calls.take().reduce((sum, { calls }) => sum + calls, 0);
  if (lost > 0) log.error({ calls: lost }, 'REST calls could not be stored and are lost');
}

function contextFor(requestId: string): Context | undefined {
  const em = availableDatabase()?.fork();
  return em && { em, config, now: dependencies.now, requestId, log, loaders: new Map() };
}

// Completes received requests, then exits. A second signal or the timeout exits at once.
async function shutDown(): Promise<void> {
  if (stopping) return;
  stopping = true;
  void setTimeout(config.shutdownTimeoutSeconds * 1000, undefined, { ref: false }).then(
    exitAfterTimeout,
  );
  for (const timer of timers) clearInterval(timer);
  const drain = await stopListening(server);
  draining = true;
  app.closeSubscriptions();
  await drain();
  // Metrics stay available until here.
  metricsServer?.close();
  metricsServer?.closeAllConnections();
  await app.stop();
  await Promise.all([...workers.map((worker) => worker.stop()), sweeping]);
  await storeLastCalls();
  await replicas?.close();
  await database?.close();
  await tracing?.close();
  await logDestination.written();
  process.exit(process.exitCode ?? 0);
}

function exitAfterTimeout(): never {
  log.error('Shutdown exceeded SHUTDOWN_TIMEOUT_SECONDS; pending requests aborted');
  process.exit(1);
}
