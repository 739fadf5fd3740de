import 'reflect-metadata';
import type { Server as HttpServer } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import { setImmediate as turn, setTimeout } from 'node:timers/promises';
import type { DestinationStream, Logger } from 'pino';
import options from '../mikro-orm.config.ts';
import { createApp, type App } from './app.ts';
import { backoff } from './core/backoff.ts';
import { addressOf, type Config } from './core/config.ts';
import { openDatabase, type Database } from './database/database.ts';
import { features } from './features.ts';
import { seedDemo } from './features/demo-data.ts';
import { CallCounter } from './features/rest-usage/call-counter.ts';
import * as restUsage from './features/rest-usage/rest-usage.service.ts';
import type { Dependencies } from './http/dependencies.ts';
import { createHttpServer } from './http/http-server.ts';
import { metricsApp, openMetrics } from './http/metrics-listener.ts';
import type { Context } from './request/context.ts';
import { openObserver } from './telemetry/observers.ts';

const SWEEP_INTERVAL_MS = 30_000;
const STORE_CALLS_INTERVAL_MS = 5_000;
const DELIVERY_INTERVAL_MS = 1_000;
/**
 * Time in which a client may send its next request on an open connection, and complete the head of
 * a request that it has begun, during a shutdown, in ms.
 */
const GRACE_MS = 1_000;
const CLOSE_IDLE_INTERVAL_MS = 100;

/** The service: an HTTP server with both APIs, its database and its background work. */
export class Server {
  private app: App | undefined;
  private http: HttpServer | undefined;
  private metrics: HttpServer | undefined;
  private database: Database | undefined;
  private dependencies: Dependencies | undefined;
  private readonly workers;
  private readonly jobs: { timer: NodeJS.Timeout; run: () => Promise<void> }[] = [];
  private isStopping = false;
  private isDraining = false;

  constructor(
    private readonly config: Config,
    private readonly log: Logger,
    /** Receives the lines of the request log. */
    private readonly requestLog: DestinationStream,
  ) {
    this.workers = features.flatMap((feature) => feature.worker?.(config, log) ?? []);
  }

  /** Port on which the server listens. */
  get port(): number {
    const address = this.http?.address() as AddressInfo | null | undefined;
    if (!address) throw new Error('The server does not listen');
    return address.port;
  }

  /**
   * Listens, prepares the database and starts the background work. Health checks get responses
   * meanwhile, other requests 503. Throws if an address cannot be used or the database rejects the
   * connection.
   */
  async start(): Promise<void> {
    const { config, log } = this;
    // Loaded only if configured, because the tracing libraries load slowly.
    const tracing =
      config.otelExporterOtlpEndpoint === undefined
        ? undefined
        : (await import('./telemetry/tracing.ts')).openTracing(config, log);
    const dependencies = (this.dependencies = this.dependenciesWith(tracing));
    const ready = this.prepareDatabase();
    // Thrown below, after the server listens.
    ready.catch(() => undefined);
    const app = (this.app = await createApp(dependencies));
    this.http = createHttpServer(config, app.listener, app.upgrades);
    await listen(this.http, config.port, config.host, log);
    if (config.metricsPort !== undefined) {
      const listener = metricsApp(openMetrics(dependencies), dependencies);
      this.metrics = createHttpServer(config, listener);
      await listen(this.metrics, config.metricsPort, config.metricsHost, log);
    }
    await ready;
    if (this.isStopping) return;
    this.repeat(SWEEP_INTERVAL_MS, () => this.sweep());
    this.repeat(STORE_CALLS_INTERVAL_MS, () => this.storeCalls());
    for (const worker of this.workers)
      this.repeat(DELIVERY_INTERVAL_MS, () =>
        worker
          .poll(() => this.contextFor(worker.jobs))
          .catch((error: unknown) =>
            log.warn({ err: error }, `Delivery of ${worker.jobs} failed; retrying`),
          ),
      );
  }

  /** Completes the received requests and the running jobs, and closes all connections. */
  async stop(): Promise<void> {
    this.isStopping = true;
    for (const { timer } of this.jobs) clearInterval(timer);
    if (this.http && this.app) await this.drain(this.http, this.app);
    // Metrics stay available until here.
    this.metrics?.close();
    this.metrics?.closeAllConnections();
    await this.app?.stop();
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await Promise.all(this.jobs.map(({ run }) => run()));
    await this.storeCalls();
    const lost = this.dependencies?.calls.take().reduce((sum, { calls }) => sum + calls, 0) ?? 0;
    if (lost > 0) this.log.error({ calls: lost }, 'REST calls could not be stored and are lost');
    await this.database?.close();
    await this.dependencies?.tracing?.close();
  }

  private dependenciesWith(tracing: Dependencies['tracing']): Dependencies {
    const { config, log } = this;
    return {
      config,
      log,
      calls: new CallCounter(),
      now: () => new Date(),
      observe: openObserver(config, log, this.requestLog),
      ...(tracing && { tracing }),
      database: () => (this.database?.isHealthy ? this.database : undefined),
      isDraining: () => this.isDraining,
    };
  }

  private async prepareDatabase(): Promise<void> {
    const { config, log } = this;
    const opened = await openDatabase(config, options, log);
    await waitForDatabase(opened, log);
    if (config.databaseUrl === undefined) await prepareEmbedded(opened, config);
    else await opened.rejectPendingMigrations();
    this.database = opened;
    opened.watch((isAnswering) => {
      if (!isAnswering) this.rejectPending();
    });
  }

  // Requests that wait for an unavailable database would otherwise wait until their timeouts.
  private rejectPending(): void {
    const requests = this.app?.rejectPending() ?? 0;
    if (requests > 0)
      this.log.warn({ requests }, 'Database unavailable; pending requests rejected');
  }

  // Responses have `Connection: close` only after the server has stopped listening, because that
  // header makes clients reconnect.
  private async drain(server: HttpServer, app: App): Promise<void> {
    // The kernel has accepted connections; Node takes one in each turn of the event loop.
    for (let turns = 0; turns < 5; turns++) await turn();
    // The `close` of an HTTP server destroys idle connections at once, with any request that a
    // client is just sending.
    const closed = new Promise<void>(
      (done) => void NetServer.prototype.close.call(server, () => done()),
    );
    this.isDraining = true;
    app.closeSubscriptions();
    server.headersTimeout = GRACE_MS;
    await Promise.race([closed, setTimeout(GRACE_MS)]);
    // Node regards a connection as idle when its response has ended, even before it is sent.
    const closing = setInterval(() => {
      if (app.pending() === 0) server.closeIdleConnections();
    }, CLOSE_IDLE_INTERVAL_MS);
    await closed;
    clearInterval(closing);
  }

  // Starts no run while the last one is in progress.
  private repeat(ms: number, work: () => Promise<void>): void {
    let running: Promise<void> | undefined;
    const run = () => (running ??= work().finally(() => (running = undefined)));
    const timer = setInterval(() => void run(), ms).unref();
    this.jobs.push({ timer, run: async () => running });
  }

  // An error of one feature does not stop the others.
  private async sweep(): Promise<void> {
    for (const feature of features) {
      const ctx = this.contextFor('sweep');
      if (!ctx || this.isStopping) return;
      try {
        await feature.sweep?.(ctx);
      } catch (error) {
        this.log.error({ err: error }, 'Expired rows could not be deleted');
      }
    }
  }

  // Calls that cannot be stored stay in the counter until the next attempt.
  private async storeCalls(): Promise<void> {
    const ctx = this.contextFor('calls');
    if (!ctx || !this.dependencies) return;
    try {
      await restUsage.store(ctx, this.dependencies.calls);
    } catch (error) {
      this.log.error({ err: error }, 'REST calls could not be stored; retrying');
    }
  }

  private contextFor(requestId: string): Context | undefined {
    const { config, log, dependencies } = this;
    const em = dependencies?.database()?.fork();
    return em && dependencies
      ? { em, config, now: dependencies.now, requestId, log, loaders: new Map() }
      : undefined;
  }
}

// Waits for the database to start. Throws if it rejects the connection.
async function waitForDatabase(opened: Database, log: Logger): Promise<void> {
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

async function prepareEmbedded(opened: Database, { bcryptCost }: Config): Promise<void> {
  await opened.migrate();
  const em = opened.fork();
  const rows: unknown[] = await em.execute('select 1 from "user" limit 1');
  if (rows.length === 0) await seedDemo(em, bcryptCost, new Date(), true);
}

function listen(server: HttpServer, port: number, host: string, log: Logger): Promise<void> {
  return new Promise((done, fail) => {
    const onError = ({ message }: Error) =>
      fail(new Error(`Cannot listen on ${addressOf(host)}:${port}: ${message}`));
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      // For example, too many open files to accept a connection.
      server.on('error', (error) => log.error({ err: error }, 'HTTP server error'));
      done();
    });
  });
}
