import 'reflect-metadata';
import type { Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from './jest.ts';
import bcrypt from 'bcrypt';
import options from '../../mikro-orm.config.ts';
import type { Logger } from 'pino';
import { createApp, type App } from '../../src/app.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { BlogEntry } from '../../src/features/blog/blog-entry.entity.ts';
import { openDatabase, type Database } from '../../src/database/database.ts';
import { readConfig, type Config } from '../../src/core/config.ts';
import type { Context } from '../../src/request/context.ts';
import type { Scope } from '../../src/core/scopes.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { Product } from '../../src/features/products/product.entity.ts';
import { Item } from '../../src/features/profile/item.entity.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { openObserver } from '../../src/telemetry/request-log.ts';
import type { Tracing } from '../../src/telemetry/tracing.ts';
import { User } from '../../src/features/users/user.entity.ts';
import { CLEAN } from './clean.ts';
import { TEST_SECRET, type TestDatabase } from './databases.ts';
import { PASSWORD, Recorder } from './leaks.ts';
import { OpenApiChecker } from './openapi.ts';

export { PASSWORD };
/** The PUBLIC_URL of the app; links in responses start with it. */
export const PUBLIC_URL = 'https://shop.example';

/**
 * bcrypt's lowest cost. The app's minimum is 10, which would take most of the time of the tests.
 */
export const LOWEST_COST = 4;

/** Idle timeout of a test's connections, in ms. */
const IDLE_MS = 120_000;
/** Timeout of requests, statements and pool acquisition, in ms: only a hang takes so long. */
const HANG_MS = 120_000;

export interface Answer {
  status: number;
  headers: Headers;
  /** The body, parsed as JSON; undefined if it is empty. */
  // Untyped: tests assert its shape.
  body: any;
  text: string;
}

export interface RequestOptions {
  /** Sends a bearer token of this user, without a session. */
  as?: User;
  token?: string;
  sessionKey?: string;
  json?: unknown;
  form?: Record<string, string>;
  /** A raw body. */
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
}

interface NewUser {
  username?: string;
  password?: string | null;
  hashedPassword?: string | null;
  email?: string | null;
  fullName?: string | null;
  disabled?: boolean;
  scopes?: Scope[];
}

/** Parts of the configuration that differ from the settings. */
interface ShopVariant extends Partial<Config> {
  /** Opens the trace exporter, if any. */
  trace?: (config: Config, log: Logger) => Tracing;
}

const openDatabases = new Set<Database>();

/**
 * The real app, listening, on this worker's database, with helpers that create data and send
 * requests.
 */
export class Shop {
  url = '';
  /** Logged lines, one event each. */
  logged: string[] = [];
  /** Checks all responses and log lines for leaks. */
  readonly recorder = new Recorder();
  /** Counts calls of REST endpoints. */
  readonly calls = new CallCounter();
  private clockShift = 0;
  private made = 0;
  private app: App | undefined;
  private server: Server | undefined;
  private open: Database | undefined;
  private documented: OpenApiChecker | undefined;
  config!: Config;
  private log!: Logger;

  constructor(
    private readonly env: Record<string, string> = {},
    private readonly variant: ShopVariant = {},
  ) {}

  get database(): Database {
    if (!this.open) throw new Error('the shop is not open');
    return this.open;
  }

  async start(): Promise<this> {
    if (this.open) return this;
    const config = readConfig(
      {
        ...workerDatabase(),
        SIGNING_SECRET: TEST_SECRET,
        PUBLIC_URL,
        GRAPHQL_EXPLORER: 'true',
        LOG_LEVEL: 'debug',
        REQUEST_TIMEOUT_MS: String(HANG_MS),
        ...this.env,
      },
      () => undefined,
    );
    const { trace, ...overrides } = this.variant;
    this.config = {
      ...config,
      bcryptCost: LOWEST_COST,
      databaseAcquireTimeoutMs: HANG_MS,
      ...overrides,
    };
    const lines = {
      write: (line: string) => {
        this.logged.push(line);
        this.recorder.log(line);
      },
    };
    const log = (this.log = openLog(this.config, lines));
    this.open = await openDatabase(this.config, options, log, true);
    openDatabases.add(this.open);
    const opened = this.open;
    const { calls } = this;
    this.app = await createApp({
      config: this.config,
      log,
      calls,
      observe: openObserver(this.config, log, lines),
      ...(trace && { tracing: trace(this.config, log) }),
      now: () => this.now(),
      database: () => opened,
      isStarting: () => false,
      isDraining: () => false,
    });
    const server = (this.server = createHttpServer(
      this.config,
      this.app.listener,
      this.app.upgrades,
    ));
    // A test that keeps this process busy for longer could use a connection that is just being
    // closed.
    server.keepAliveTimeout = IDLE_MS;
    server.headersTimeout = server.requestTimeout = HANG_MS;
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.port}${this.config.basePath}`;
    return this;
  }

  closeSubscriptions(): void {
    this.app?.closeSubscriptions();
  }

  async stop(): Promise<void> {
    this.closeSubscriptions();
    this.server?.closeAllConnections();
    await new Promise((done) => (this.server ? this.server.close(done) : done(undefined)));
    await this.app?.stop();
    if (this.open) openDatabases.delete(this.open);
    await this.open?.close();
    this.recorder.assertClean();
  }

  get port(): number {
    const address = this.server?.address() as AddressInfo | null | undefined;
    if (!address) throw new Error('the shop is not open');
    return address.port;
  }

  async empty(): Promise<void> {
    this.clockShift = 0;
    this.logged.length = 0;
    await this.sql(CLEAN);
    this.calls.take();
  }

  now(): Date {
    return new Date(Date.now() + this.clockShift);
  }

  /** Moves the app's clock forward. */
  advanceClock(ms: number): void {
    this.clockShift += ms;
  }

  /** The context of a request without credentials, to call services as the app does. */
  context(): Context {
    const { database, config } = this;
    return {
      em: database.fork(),
      statements: database.statements,
      config,
      now: () => this.now(),
      requestId: 'test',
      log: openLog({ logLevel: 'silent' }),
      loaders: new Map(),
    };
  }

  /** The context of a background worker, which logs like the app. */
  workerContext(): Context {
    const { database, config, log } = this;
    return {
      em: database.fork(),
      config,
      now: () => this.now(),
      requestId: 'mail',
      log,
      loaders: new Map(),
    };
  }

  async sql(statement: string): Promise<Record<string, unknown>[]> {
    const rows = await this.database.fork().execute<Record<string, unknown>[]>(statement);
    countCommit();
    return rows;
  }

  /** A token of the user that belongs to no session. */
  tokenOf(user: User, lifetime?: number): string {
    return createAccessToken(this.context(), { username: user.username }, lifetime);
  }

  async rest(
    method: string,
    path: string,
    { as, token, sessionKey, json, form, body, headers = {} }: RequestOptions = {},
  ): Promise<Answer> {
    const bearer = token ?? (as && this.tokenOf(as));
    const request: RequestInit = {
      method,
      redirect: 'manual',
      headers: {
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(sessionKey !== undefined && { 'X-SESSION-ID': sessionKey }),
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body:
        json !== undefined
          ? JSON.stringify(json)
          : form
            ? new URLSearchParams(form)
            : (body ?? null),
    };
    const answer = await fetchAnswer(this.url + path, request);
    this.recorder.answer(JSON.stringify([...answer.headers]) + answer.text);
    (this.documented ??= new OpenApiChecker(this.config)).check(method, path, answer);
    return answer;
  }

  /** Sends a GraphQL request; `body` has `data` and `errors`. */
  async graphql(
    query: string,
    variables: Record<string, unknown> = {},
    request: RequestOptions = {},
  ): Promise<Answer> {
    return this.rest('POST', '/graphql', { ...request, json: { query, variables } });
  }

  /**
   * Sends these bytes. Returns the response once the server closes the connection; throws if it
   * stays open.
   */
  raw(request: string): Promise<string> {
    return new Promise((done, fail) => {
      const socket = connect(this.port, '127.0.0.1', () => socket.write(request, 'latin1'));
      let answer = '';
      socket.setTimeout(HANG_MS, () =>
        socket.destroy(
          new Error(`The server left the connection open after ${JSON.stringify(answer)}`),
        ),
      );
      socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
      socket.on('close', () => {
        this.recorder.answer(answer);
        done(answer);
      });
      socket.on('error', fail);
    });
  }

  async makeUser({
    username,
    password,
    hashedPassword,
    email,
    fullName,
    disabled,
    scopes,
  }: NewUser = {}): Promise<User> {
    const name = username ?? `user${++this.made}`;
    const hash =
      hashedPassword !== undefined
        ? hashedPassword
        : password === null
          ? null
          : await hashOf(password ?? PASSWORD, this.config.bcryptCost);
    const user = Object.assign(new User(), {
      username: name,
      email: email === undefined ? `${encodeURIComponent(name)}@shop.example` : email,
      fullName: fullName ?? null,
      disabled: disabled ?? false,
      scopes: scopes ?? [],
      hashedPassword: hash,
    });
    return this.store(user);
  }

  async makeProduct(
    values: Partial<Pick<Product, 'name' | 'barcode' | 'price' | 'createdAt'>> = {},
  ): Promise<Product> {
    const at = values.createdAt ?? this.now();
    return this.store(
      Object.assign(new Product(), {
        name: `Product ${++this.made}`,
        barcode: this.newBarcode(),
        price: '9.99',
        createdAt: at,
        updatedAt: at,
        ...values,
      }),
    );
  }

  async makeProducts(count: number): Promise<Product[]> {
    const made: Product[] = [];
    for (let index = 0; index < count; index++) made.push(await this.makeProduct());
    return made;
  }

  async makeItem(owner: User, itemId = `item ${++this.made}`): Promise<Item> {
    return this.store(
      Object.assign(new Item(), { ownerPk: owner.pk, itemId, createdAt: this.now() }),
    );
  }

  async makeEntry(
    creator: User,
    values: Partial<Pick<BlogEntry, 'title' | 'body' | 'published' | 'createdAt'>> = {},
  ): Promise<BlogEntry> {
    const at = values.createdAt ?? this.now();
    return this.store(
      Object.assign(new BlogEntry(), {
        title: `Entry ${++this.made}`,
        body: 'Text.',
        published: true,
        creatorPk: creator.pk,
        createdAt: at,
        updatedAt: at,
        ...values,
      }),
    );
  }

  /** A valid, new barcode. */
  newBarcode(): string {
    const digits = `400${String(++this.made).padStart(9, '0')}`;
    return digits + checkDigit(digits);
  }

  private async store<T extends object>(entity: T): Promise<T> {
    await this.database.fork().persist(entity).flush();
    countCommit();
    return entity;
  }
}

/** The settings of this worker's database. */
export function workerDatabase(): TestDatabase['env'] {
  const databases = JSON.parse(process.env['TEST_DATABASES'] ?? '[]') as TestDatabase['env'][];
  return databases[Number(process.env['JEST_WORKER_ID'] ?? 1) - 1] ?? { DATABASE_URL: '' };
}

const shared = new Map<string, Shop>();

/**
 * Returns the shop with these settings for the tests of a file. It is started once per worker and
 * emptied before each test.
 */
export function useShop(
  env: Record<string, string> = {},
  variant: Omit<ShopVariant, 'trace'> = {},
): Shop {
  const key = JSON.stringify([env, variant]);
  const shop = shared.get(key) ?? new Shop(env, variant);
  shared.set(key, shop);
  beforeAll(() => shop.start());
  beforeEach(() => shop.empty());
  afterAll(() => shop.recorder.assertClean());
  return shop;
}

/** The codes of a GraphQL response's errors. */
export function codes({ body }: Answer): string[] {
  return (body.errors ?? []).map(
    ({ extensions }: { extensions: { code: string } }) => extensions.code,
  );
}

/** The code of a GraphQL response's first error. */
export function codeOf({ body }: Answer): string | undefined {
  return body.errors?.[0].extensions.code;
}

// The runner ends a worker by disconnecting. Open handles would keep the process alive.
process.once('disconnect', () => process.exit());

// Invalidates caches of all shops in this process: tests write to the database without the
// services.
function countCommit(): void {
  for (const { statements } of openDatabases) statements.commits++;
}

async function fetchAnswer(url: string, request: RequestInit): Promise<Answer> {
  const answer = await fetch(url, request);
  const text = await answer.text();
  return {
    status: answer.status,
    headers: answer.headers,
    text,
    body: text === '' ? undefined : parse(text),
  };
}

const hashes = new Map<string, Promise<string>>();

function hashOf(password: string, cost: number): Promise<string> {
  const key = `${cost} ${password}`;
  const known = hashes.get(key) ?? bcrypt.hash(password, cost);
  hashes.set(key, known);
  return known;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
