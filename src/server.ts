import 'reflect-metadata';
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import pRetry from 'p-retry';
import type { DestinationStream, Logger } from 'pino';
import options from '../mikro-orm.config.ts';
import { createApp, type App } from './app.ts';
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
import { openObserver } from './telemetry/request-log.ts';

const SWEEP_INTERVAL_MS = 30_000;
const STORE_CALLS_INTERVAL_MS = 5_000;
const DELIVERY_INTERVAL_MS = 1_000;
/** Time in ms in which `/readyz` is 503 and responses close connections, before listening ends. */
const GRACE_MS = 1_000;

/** The service: an HTTP server with both APIs, its database and its background work. */
export class Server {
  private app: App | undefined;
  private http: HttpServer | undefined;
  private metrics: HttpServer | undefined;
  private opening: Promise<Database> | undefined;
  private database: Database | undefined;
  /** The database, while its health check succeeds. */
  private available: Database | undefined;
  private tracing: Dependencies['tracing'];
  private readonly calls = new CallCounter();
  private readonly workers;
  private readonly jobs: { timer: NodeJS.Timeout; run: () => Promise<unknown> }[] = [];
  private isStopping = false;

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
    const address = this.http?.address();
    if (typeof address !== 'object' || !address) throw new Error('The server does not listen');
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
    if (config.otelExporterOtlpEndpoint !== undefined)
      this.tracing = (await import('./telemetry/tracing.ts')).openTracing(config, log);
    const dependencies: Dependencies = {
      config,
      log,
      calls: this.calls,
      now: () => new Date(),
      observe: openObserver(config, log, this.requestLog),
      ...(this.tracing && { tracing: this.tracing }),
      database: () => this.available,
      isStarting: () => !this.database,
      isDraining: () => this.isStopping,
    };
    const ready = this.prepareDatabase();
    // Thrown below, after the server listens.
    ready.catch(() => undefined);
    const app = (this.app = await createApp(dependencies));
    this.http = createHttpServer(config, app.listener, app.upgrades);
    await listen(this.http, config.port, config.host, log);
    if (config.metricsPort !== undefined) {
      this.metrics = createHttpServer(config, metricsApp(openMetrics(dependencies)));
      await listen(this.metrics, config.metricsPort, config.metricsHost, log);
    }
    await ready;
    if (this.isStopping) return;
    for (const feature of features)
      this.repeat('Deletion of expired rows', SWEEP_INTERVAL_MS, async (ctx) =>
        feature.sweep?.(ctx),
      );
    this.repeat('Storing REST calls', STORE_CALLS_INTERVAL_MS, (ctx) =>
      restUsage.store(ctx, this.calls),
    );
    for (const worker of this.workers)
      this.repeat(`Delivery of ${worker.jobs}`, DELIVERY_INTERVAL_MS, () =>
        worker.poll(() => this.contextFor(worker.jobs)),
      );
  }

  /** Completes the received requests and the running jobs, and closes all connections. */
  async stop(): Promise<void> {
    this.isStopping = true;
    // The last requests may take until the process exits.
    const workers = Promise.all(this.workers.map((worker) => worker.stop()));
    if (this.http) await this.drain(this.http);
    for (const { timer } of this.jobs) clearInterval(timer);
    this.metrics?.close();
    await this.app?.stop();
    await workers;
    await Promise.all(this.jobs.map(({ run }) => run()));
    const ctx = this.contextFor('shutdown');
    if (ctx) await restUsage.store(ctx, this.calls).catch(() => undefined);
    const lost = this.calls.take().reduce((sum, { calls }) => sum + calls, 0);
    if (lost > 0) this.log.error({ calls: lost }, 'REST calls could not be stored and are lost');
    // Also one that is not prepared yet.
    await (await this.opening?.catch(() => undefined))?.close();
    await this.tracing?.close();
  }

  private async prepareDatabase(): Promise<void> {
    const { config, log } = this;
    const opened = await (this.opening = openDatabase(config, options, log));
    if (this.isStopping) return;
    await pRetry(() => opened.ping(), {
      retries: Infinity,
      minTimeout: 100,
      maxTimeout: 5_000,
      randomize: true,
      shouldRetry: ({ error }) => !this.isStopping && !isConnectionRejected(error),
      onFailedAttempt: ({ error }) => log.warn({ err: error }, 'Database unavailable; retrying'),
    });
    if (config.databaseUrl !== undefined) await opened.rejectPendingMigrations();
    else {
      await opened.migrate();
      const em = opened.fork();
      const rows: unknown[] = await em.execute('select 1 from "user" limit 1');
      if (rows.length === 0) await seedDemo(em, config.bcryptCost, new Date());
    }
    this.database = this.available = opened;
    // Requests that wait for an unavailable database would otherwise wait until their timeouts.
    opened.watch((isAnswering) => {
      this.available = isAnswering ? opened : undefined;
      if (!isAnswering) this.app?.rejectPending();
    });
  }

  private async drain(server: HttpServer): Promise<void> {
    this.app?.closeSubscriptions();
    // Connections without a request would last as long as these.
    server.headersTimeout = server.keepAliveTimeout = GRACE_MS;
    await setTimeout(GRACE_MS);
    // An HTTP server's own `close` destroys connections on which a request is just arriving.
    NetServer.prototype.close.call(server);
    await once(server, 'close');
  }

  // Runs the work while the database is available. Starts no run while the last one is in progress.
  private repeat(name: string, ms: number, work: (ctx: Context) => Promise<unknown>): void {
    let running: Promise<unknown> | undefined;
    const run = () => {
      const ctx = this.contextFor(name);
      if (!ctx || running) return;
      running = work(ctx)
        .catch((error: unknown) => this.log.warn({ err: error }, `${name} failed; retrying`))
        .finally(() => (running = undefined));
    };
    this.jobs.push({ timer: setInterval(run, ms).unref(), run: async () => running });
  }

  private contextFor(requestId: string): Context | undefined {
    const { config, log, available: database } = this;
    if (!database) return undefined;
    const em = database.fork();
    return { em, config, now: () => new Date(), requestId, log, loaders: new Map() };
  }
}

// PostgreSQL's class 28 (wrong user or password) and 3D000 (no such database).
function isConnectionRejected(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(28...|3D000)$/.test(String(error.code));
}

async function listen(server: HttpServer, port: number, host: string, log: Logger): Promise<void> {
  server.listen(port, host);
  await once(server, 'listening').catch(({ message }: Error) => {
    throw new Error(`Cannot listen on ${addressOf(host)}:${port}: ${message}`);
  });
  // For example, too many open files to accept a connection.
  server.on('error', (error) => log.error({ err: error }, 'HTTP server error'));
}
