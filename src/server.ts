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
import { events, features, letters } from './features.ts';
import { ConfigError, readConfig, type Config } from './core/config.ts';
import type { Context } from './request/context.ts';
import { pauses } from './core/backoff.ts';
import { redactor } from './core/redact.ts';
import type { Rounds } from './api/polling-worker.ts';
import { onSignals } from './core/signals.ts';
import { CallCounter } from './features/rest-usage/call-counter.ts';
import * as legacy from './features/rest-usage/rest-usage.service.ts';
import { Postman } from './features/mail/mail-worker.ts';
import { openTransport } from './features/mail/transport.ts';
import { refuseWaiting } from './http/request-timeout.ts';
import { trustedDocuments } from './graphql/trusted-documents.ts';
import { stopListening } from './http/drain.ts';
import { createHttpServer } from './http/http-server.ts';
import { admission } from './http/admission.ts';
import { metricsListener, openMetrics } from './http/metrics-listener.ts';
import { welcome } from './cli/startup-banner.ts';
import { LogLines } from './telemetry/log-destination.ts';
import { logConsole, openLog, STDERR } from './telemetry/log.ts';
import type { Services } from './http/dependencies.ts';
import { openObserver } from './telemetry/observers.ts';
import { Courier } from './features/webhooks/delivery-worker.ts';
import { openSender } from './features/webhooks/http-client.ts';

const EXIT_CONFIG = 78; // EX_CONFIG of sysexits(3)
const SWEEP_EVERY_MS = 30_000;
const STORE_CALLS_EVERY_MS = 5_000;
const DELIVER_EVERY_MS = 1_000;

const config = readConfigOrExit();
const lines = new LogLines(STDERR);
const log = openLog(config, lines);
const redact = redactor(config);
let database: Database | undefined;
let replicas: Replicas | undefined;
let leaving = false;
let draining = false;
let timers: NodeJS.Timeout[] = [];
let storing: Promise<void> | undefined;
let sweeping: Promise<void> | undefined;

// What sends traces takes a while to load, and most have nowhere to send them.
const tracing = config.otlpEndpoint === undefined ? undefined : (await import('./http/tracing.ts')).openTracing(config, log);
const services: Services = {
  config,
  log,
  calls: new CallCounter(),
  now: () => new Date(),
  observe: openObserver(config, log, lines),
  ...(tracing && { tracing }),
  database: reachable,
  ...(config.replicaUrls.length > 0 && { replica: () => replicas?.choose() }),
  isDraining: () => draining,
};
const postman = new Postman(letters, openTransport(config, log));
const courier = new Courier(events, openSender(config));
const isReady = makeReady();
const app = await createApp(services).catch(refuse);
const server = await listen(createHttpServer(config, admission(services, app.listener), app.upgrades), config.port, config.host);
const metricsServer = await listenForMetrics();
onSignals(
  ['SIGTERM', 'SIGINT'],
  () => (leaving ? process.exit(1) : void shutDown()),
  () => process.exit(1),
);
// Nobody knows what state is left behind: answer what came in, and let the supervisor start anew.
process.once('uncaughtException', (error) => {
  log.fatal({ err: error }, 'an error was caught by nobody');
  process.exitCode = 1;
  void shutDown();
});
await isReady;
timers = [
  setInterval(sweep, SWEEP_EVERY_MS),
  setInterval(storeCalls, STORE_CALLS_EVERY_MS),
  setInterval(() => void deliver(courier, 'webhooks'), DELIVER_EVERY_MS),
];
// Without these two there is nothing to send.
if (config.registration || config.passwordReset) timers.push(setInterval(() => void deliver(postman, 'mails'), DELIVER_EVERY_MS));
for (const timer of timers) timer.unref();
console.log(welcome(config, (server.address() as AddressInfo).port));
logConsole(log);
if (config.linksToLocalhost) {
  const { publicUrl } = config;
  log.warn({ event: 'config.public_url', publicUrl }, 'links lead to this machine: set PUBLIC_URL to the address that clients use');
}
void measureHash({ config }).then((ms) => log.info({ event: 'auth.hash_cost', cost: config.bcryptCost, ms }, 'what a password hash costs'));

function readConfigOrExit(): Config {
  try {
    const made = readConfig(process.env, ({ databaseUrl, dataDir }) =>
      databaseUrl === undefined ? embeddedSigningSecret(dataDir) : undefined,
    );
    // The app reads them for itself, but by then the database has been started.
    trustedDocuments(made);
    return made;
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
}

async function makeReady(): Promise<void> {
  try {
    const opened = await openDatabase(config, options, log);
    await answering(opened);
    if (config.databaseUrl === undefined) await prepareEmbedded(opened);
    else await opened.refusePending();
    if (config.replicaUrls.length > 0) replicas = openReplicas(config, opened.statements, log);
    database = opened;
    opened.watch(onPulse);
  } catch (error) {
    console.error(redact(error instanceof Error ? error.message : String(error)));
    process.exit(1);
  }
}

function reachable(): Database | undefined {
  return database?.isAnswering ? database : undefined;
}

// Whoever waits for a database that has fallen silent would wait for as long as all time limits let them.
function onPulse(isAnswering: boolean): void {
  if (isAnswering) return;
  const refused = refuseWaiting();
  if (refused > 0) log.warn({ requests: refused }, 'requests were waiting for the database');
}

// A database that is not there yet is waited for; one that refuses us is not.
async function answering(opened: Database): Promise<void> {
  for (const pause of pauses()) {
    try {
      return await opened.ping();
    } catch (error) {
      if (isRefusal(error)) throw error;
      log.warn({ err: error }, 'the database does not answer');
    }
    await setTimeout(pause);
  }
}

// PostgreSQL's class 28 (wrong user or password) and 3D000 (no such database).
function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(28...|3D000)$/.test(String(error.code));
}

async function prepareEmbedded(opened: Database): Promise<void> {
  await opened.migrate();
  const em = opened.fork();
  const rows: unknown[] = await em.execute('select 1 from "user" limit 1');
  if (rows.length === 0) await seedDemo(em, config.bcryptCost, new Date(), true);
}

function listen(made: Server, port: number, host: string): Promise<Server> {
  return new Promise((done) => {
    const refuseToStart = (error: Error) => {
      console.error(`Cannot listen on ${host}:${port}: ${error.message}`);
      process.exit(1);
    };
    made.once('error', refuseToStart);
    made.listen(port, host, () => {
      made.off('error', refuseToStart);
      // Such as a connection that cannot be accepted because there are too many files open.
      made.on('error', (error) => log.error({ err: error }, 'a server that listens has met an error'));
      done(made);
    });
  });
}

async function listenForMetrics(): Promise<Server | undefined> {
  if (config.metricsPort === undefined) return undefined;
  const answer = metricsListener(openMetrics(services), services);
  return listen(createHttpServer(config, answer), config.metricsPort, config.metricsHost);
}

function sweep(): Promise<void> {
  sweeping ??= sweepAll().finally(() => (sweeping = undefined));
  return sweeping;
}

// What one feature cannot delete is no reason to keep what others can.
async function sweepAll(): Promise<void> {
  for (const feature of features) {
    const ctx = contextFor('sweep');
    if (!ctx || leaving) return;
    try {
      await feature.sweep?.(ctx);
    } catch (error) {
      log.error({ err: error }, 'expired rows could not be deleted');
    }
  }
}

// Whatever it was, the next round tries again.
async function deliver(rounds: Rounds, what: string): Promise<void> {
  try {
    await rounds.deliver(() => contextFor(what));
  } catch (error) {
    log.warn({ err: error }, `${what} could not be delivered yet`);
  }
}

// What cannot be stored stays in the counter, and goes with the next.
function storeCalls(): Promise<void> {
  storing ??= tryToStoreCalls().finally(() => (storing = undefined));
  return storing;
}

async function tryToStoreCalls(): Promise<void> {
  const ctx = contextFor('calls');
  if (!ctx) return;
  try {
    await legacy.store(ctx, services.calls);
  } catch (error) {
    log.error({ err: error }, 'calls of REST rows could not be stored yet');
  }
}

// Once more than is under way, for calls have come in since it began.
async function storeLastCalls(): Promise<void> {
  await storing;
  await storeCalls();
  const lost = services.calls.take().reduce((sum, { calls }) => sum + calls, 0);
  if (lost > 0) log.error({ calls: lost }, 'calls of REST rows were counted, and could not be stored');
}

function contextFor(requestId: string): Context | undefined {
  const em = reachable()?.fork();
  return em && { em, config, now: services.now, requestId, log, loaders: new Map() };
}

// Answers what has come in, then ends. A later signal, or too long a wait, ends it at once.
async function shutDown(): Promise<void> {
  if (leaving) return;
  leaving = true;
  void setTimeout(config.shutdownSeconds * 1000, undefined, { ref: false }).then(leaveUnanswered);
  for (const timer of timers) clearInterval(timer);
  const drain = await stopListening(server);
  draining = true;
  app.sendAway();
  await drain();
  // Read to the end by whoever watches.
  metricsServer?.close();
  metricsServer?.closeAllConnections();
  await app.stop();
  await Promise.all([postman.stop(), courier.stop(), sweeping]);
  await storeLastCalls();
  await replicas?.close();
  await database?.close();
  await tracing?.close();
  await lines.written();
  process.exit(process.exitCode ?? 0);
}

function leaveUnanswered(): never {
  log.error('not everything was answered before SHUTDOWN_SECONDS had passed');
  process.exit(1);
}
