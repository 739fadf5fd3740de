import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import proxyaddr from 'proxy-addr';
import { z } from 'zod';
import { DEFAULT_DATA_DIR } from './data-dir.ts';
import { SCOPES } from './scopes.ts';

/** Every setting, read and checked. The README's table says what each is for. */
export type Config = Readonly<
  Omit<z.output<typeof schema>, 'signingSecrets'> & { /** Newest first: it signs, and all verify. */ signingSecrets: readonly string[] }
>;

/** Configuration that cannot be used: every problem, named by its variable and never with its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(`The configuration cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`, options);
  }
}

/** The ways past the ordinary one that can be switched off (docs/performance.md). */
export const SHORTCUTS = ['direct', 'plans', 'shared', 'tokens'] as const;

/** What becomes of GraphQL documents that are in no manifest: `log` tells of them, `enforce` refuses them. */
const TRUST_MODES = ['off', 'log', 'enforce'] as const;

/** What may stand between us and the database, lending its connections: nothing, or a pooler that lends one for each transaction. */
const POOLERS = ['none', 'transaction'] as const;

/** The most that a password's hash may cost: a stored one of more would hold up a thread for minutes. */
export const MAX_BCRYPT_COST = 16;

const SECRET_RULE = 'must have 32 bytes or more';
/** How many secrets may be good at a time: each costs one more look at a token that is not ours. */
const MAX_SECRETS = 8;
/** More would take the machine from what answers requests. */
const MAX_HASH_THREADS = 8;
// Of FastAPI's tutorial, which the first clients of the interface were written after, of jwt.io, of RFC 7515 (A.1), and of a tutorial for Spring.
const KNOWN_SECRETS = new Set([
  '09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7',
  'a-string-secret-at-least-256-bits-long',
  'AyM1SysPpbyfDfZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
  '404E635266556A586E3272357538782F413F4428472B4B6250645367566B5970',
]);

/** Whom a mail is from that leaves the machine only as a file. */
const LOCAL_SENDER = 'shopfront@localhost';

const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`);
const onOff = z.enum(['on', 'off'], 'must be on or off').transform((text) => text === 'on');
const share = z
  .string()
  .regex(/^\d(\.\d{1,6})?$/, 'must be a number such as 0.25')
  .transform(Number)
  .refine((value) => value <= 1, 'must be from 0 to 1');
const path = z.string().regex(/^(\/[\w.~-]+)*$/, 'must be empty or a path such as /shop, with no slash at its end');
const mailbox = z
  .string()
  .regex(/^([^<>@\p{Cc}]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u, 'must be an address such as Shop <shop@shop.example>');
const url = (protocol: RegExp, example: string) => z.url({ protocol, error: `must be a URL such as ${example}` });
const secret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, SECRET_RULE)
  .refine((text) => !KNOWN_SECRETS.has(text), 'is one that stands in a tutorial, where everyone can read it');
// The name of a file may have spaces in it.
const files = list(/\s*,\s*/);
const scopes = list().pipe(z.array(z.enum(SCOPES, `must name scopes out of ${SCOPES.join(', ')}`)));
const date = z.iso.date('must be a date such as 2027-01-31').transform((text) => new Date(text));

const environment = z.object({
  HOST: z.string().optional(),
  PORT: whole(0, 65_535).default(4000),
  BASE_PATH: path.default(''),
  PUBLIC_URL: url(/^https?$/, 'https://shop.example').optional(),
  DATABASE_URL: url(/^postgres(ql)?$/, 'postgresql://user@host/name').optional(),
  DATABASE_REPLICA_URLS: list()
    .pipe(z.array(url(/^postgres(ql)?$/, 'postgresql://user@host/name')))
    .default([]),
  DATABASE_REPLICA_MAX_LAG_MS: whole(500, 600_000).default(1_000),
  DATABASE_POOLER: z.enum(POOLERS, `must be one of ${POOLERS.join(', ')}`).default('none'),
  DATABASE_POOL_MAX: whole(1, 1000).default(10),
  DATABASE_SHARED_CONNECTIONS: whole(0, 16).default(1),
  DATABASE_PREPARED_STATEMENTS: flag.default(true),
  DATABASE_STATEMENT_TIMEOUT_MS: whole(100, 600_000).default(10_000),
  DATA_DIR: z.string().default(DEFAULT_DATA_DIR),
  SIGNING_SECRET: secret.optional(),
  SIGNING_SECRETS: list()
    .pipe(z.array(secret).min(1).max(MAX_SECRETS, `must be at most ${MAX_SECRETS}`))
    .optional(),
  SESSION_PREFIX: path.refine(isFreePrefix, 'must be a path under which nothing else signs in, such as /session').default('/session'),
  SESSION_IDLE_DAYS: whole(1, 3650).default(14),
  SESSION_LIFETIME_DAYS: whole(1, 3650).default(90),
  REFRESH_REUSE_SECONDS: whole(0, 300).default(10),
  BCRYPT_COST: whole(10, MAX_BCRYPT_COST).default(10),
  HASH_THREADS: whole(1, MAX_HASH_THREADS).optional(),
  HASH_QUEUE: whole(1, 10_000).default(64),
  LOGIN_FAILURES_PER_ACCOUNT: whole(1, 1_000_000).default(100),
  LOGIN_FAILURES_PER_ADDRESS: whole(1, 1_000_000).default(1_000),
  REGISTRATION: onOff.default(false),
  PASSWORD_RESET: onOff.default(false),
  ACCOUNT_URL: url(/^https?$/, 'https://shop.example/account')
    .refine((text) => !text.includes('#'), 'must have no fragment: the token stands there')
    .optional(),
  SMTP_URL: url(/^smtps?$/, 'smtps://user:password@mail.example').optional(),
  MAIL_FROM: mailbox.optional(),
  MAIL_REQUESTS_PER_ADDRESS: whole(1, 1_000_000).default(30),
  MAILS_PER_RECIPIENT: whole(1, 1_000_000).default(5),
  ANONYMOUS_SCOPES: scopes.default([]),
  JWT_ISSUER: z.string().optional(),
  JWT_AUDIENCE: z.string().optional(),
  JWT_LEEWAY_SECONDS: whole(0, 300).default(0),
  LEGACY_QUERY_LOGIN: flag.default(true),
  COMPRESSION: onOff.default(true),
  DEFAULT_PAGE_SIZE: whole(1, 1000).default(100),
  PUBLIC_MAX_AGE_SECONDS: whole(0, 31_536_000).default(0),
  V1_DEPRECATED_ON: date.optional(),
  V1_SUNSET_ON: date.optional(),
  V2_DEPRECATED_ON: date.optional(),
  V2_SUNSET_ON: date.optional(),
  LEGACY_CALLS_KEPT_DAYS: whole(1, 3650).default(400),
  CHANGES_KEPT_DAYS: whole(1, 3650).default(3),
  WEBHOOK_PRIVATE_TARGETS: flag.default(false),
  GRAPHQL_MAX_TOKENS: whole(1, 1_000_000).default(1_000),
  GRAPHQL_MAX_DEPTH: whole(1, 1_000).default(8),
  GRAPHQL_MAX_ALIASES: whole(0, 10_000).default(15),
  GRAPHQL_MAX_ROOT_FIELDS: whole(1, 10_000).default(10),
  GRAPHQL_MAX_DIRECTIVES: whole(0, 10_000).default(50),
  GRAPHQL_MAX_COST: whole(1, 100_000_000).default(1_000),
  GRAPHQL_MAX_RESPONSE_BYTES: whole(1_000, 100_000_000).default(10_000_000),
  TRUSTED_DOCUMENTS: files.default([]),
  TRUSTED_DOCUMENTS_MODE: z.enum(TRUST_MODES, `must be one of ${TRUST_MODES.join(', ')}`).default('off'),
  MAX_ITEMS_PER_USER: whole(1, 1_000_000).default(10_000),
  MAX_BLOG_ENTRIES_PER_USER: whole(1, 1_000_000).default(10_000),
  MAX_CONNECTIONS: whole(1, 1_000_000).default(5_000),
  MAX_REQUESTS_IN_FLIGHT: whole(1, 1_000_000).default(1_000),
  MAX_LIVE_CONNECTIONS: whole(0, 1_000_000).default(2_000),
  MAX_LIVE_PER_ADDRESS: whole(1, 1_000_000).default(200),
  MAX_SUBSCRIPTIONS_PER_ADDRESS: whole(1, 1_000_000).default(1_000),
  MAX_SUBSCRIPTIONS_PER_SOCKET: whole(1, 1_000).default(20),
  REQUEST_DEADLINE_MS: whole(100, 600_000).default(10_000),
  SHORTCUTS: list()
    .transform((names) => (names.includes('none') ? [] : names))
    .pipe(z.array(z.enum(SHORTCUTS, `must be none, or name some of ${SHORTCUTS.join(', ')}`)))
    .default([...SHORTCUTS]),
  GRAPHQL_EXPLORER: flag.optional(),
  TRUST_PROXY: list()
    .refine((parts) => parts.every(isNetwork), 'must name addresses and networks such as 10.0.0.0/8')
    .default([]),
  METRICS_HOST: z.string().default('127.0.0.1'),
  METRICS_PORT: whole(1, 65_535).optional(),
  SHUTDOWN_SECONDS: whole(1, 600).default(10),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?$/, 'http://collector.example:4318').optional(),
  OTEL_SERVICE_NAME: z.string().default('shopfront'),
  OTEL_TRACES_SAMPLER_ARG: share.default(1),
  LOG_REQUESTS: flag.default(true),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], 'must be a level of the log').default('info'),
});

/** The names of all settings, as they stand in the environment. */
export const settingNames: readonly string[] = Object.keys(environment.shape);

const schema = environment.check(refuseEarlySunset('V1'), refuseEarlySunset('V2')).transform((env) => {
  const embedded = env.DATABASE_URL === undefined;
  const host = env.HOST ?? (embedded ? '127.0.0.1' : '0.0.0.0');
  const isAnyAddress = /^(0\.0\.0\.0|::)$/.test(host);
  return {
    host,
    port: env.PORT,
    basePath: env.BASE_PATH,
    publicUrl: (env.PUBLIC_URL ?? `http://${isAnyAddress ? 'localhost' : bracketed(host)}:${env.PORT}`).replace(/\/$/, ''),
    /** Whether the operator has set PUBLIC_URL. */
    isPublicUrlSet: env.PUBLIC_URL !== undefined,
    /** Whether links lead to this machine only by default, while clients may be elsewhere. */
    linksToLocalhost: env.PUBLIC_URL === undefined && (isAnyAddress || (!embedded && /^(127\.[\d.]+|::1|localhost)$/.test(host))),
    /** Absent on the embedded default. */
    databaseUrl: env.DATABASE_URL,
    replicaUrls: env.DATABASE_REPLICA_URLS,
    replicaMaxLagMs: env.DATABASE_REPLICA_MAX_LAG_MS,
    pooler: env.DATABASE_POOLER,
    poolMax: env.DATABASE_POOL_MAX,
    sharedConnections: env.DATABASE_SHARED_CONNECTIONS,
    preparedStatements: env.DATABASE_PREPARED_STATEMENTS,
    statementTimeoutMs: env.DATABASE_STATEMENT_TIMEOUT_MS,
    dataDir: env.DATA_DIR,
    signingSecrets: env.SIGNING_SECRETS ?? (env.SIGNING_SECRET === undefined ? undefined : [env.SIGNING_SECRET]),
    sessionPrefix: env.SESSION_PREFIX,
    sessionIdleDays: env.SESSION_IDLE_DAYS,
    sessionLifetimeDays: env.SESSION_LIFETIME_DAYS,
    refreshReuseSeconds: env.REFRESH_REUSE_SECONDS,
    bcryptCost: env.BCRYPT_COST,
    hashThreads: env.HASH_THREADS ?? Math.min(availableParallelism(), MAX_HASH_THREADS),
    hashQueue: env.HASH_QUEUE,
    loginFailuresPerAccount: env.LOGIN_FAILURES_PER_ACCOUNT,
    loginFailuresPerAddress: env.LOGIN_FAILURES_PER_ADDRESS,
    registration: env.REGISTRATION,
    passwordReset: env.PASSWORD_RESET,
    /** Absent where mails have the token and no link. */
    accountUrl: env.ACCOUNT_URL,
    /** Absent where mails become files, which is on the embedded default only. */
    smtpUrl: env.SMTP_URL,
    mailFrom: env.MAIL_FROM ?? LOCAL_SENDER,
    mailRequestsPerAddress: env.MAIL_REQUESTS_PER_ADDRESS,
    mailsPerRecipient: env.MAILS_PER_RECIPIENT,
    anonymousScopes: env.ANONYMOUS_SCOPES,
    jwtIssuer: env.JWT_ISSUER,
    jwtAudience: env.JWT_AUDIENCE,
    jwtLeewaySeconds: env.JWT_LEEWAY_SECONDS,
    legacyQueryLogin: env.LEGACY_QUERY_LOGIN,
    compression: env.COMPRESSION,
    defaultPageSize: env.DEFAULT_PAGE_SIZE,
    publicMaxAgeSeconds: env.PUBLIC_MAX_AGE_SECONDS,
    /** By the version in a path, from when on it is deprecated, and until when it is served. */
    versionDates: {
      v1: { deprecatedOn: env.V1_DEPRECATED_ON, sunsetOn: env.V1_SUNSET_ON },
      v2: { deprecatedOn: env.V2_DEPRECATED_ON, sunsetOn: env.V2_SUNSET_ON },
    },
    legacyCallsKeptDays: env.LEGACY_CALLS_KEPT_DAYS,
    changesKeptDays: env.CHANGES_KEPT_DAYS,
    webhookPrivateTargets: env.WEBHOOK_PRIVATE_TARGETS,
    graphqlLimits: {
      tokens: env.GRAPHQL_MAX_TOKENS,
      depth: env.GRAPHQL_MAX_DEPTH,
      aliases: env.GRAPHQL_MAX_ALIASES,
      rootFields: env.GRAPHQL_MAX_ROOT_FIELDS,
      directives: env.GRAPHQL_MAX_DIRECTIVES,
      cost: env.GRAPHQL_MAX_COST,
      responseBytes: env.GRAPHQL_MAX_RESPONSE_BYTES,
    },
    trustedDocuments: { files: env.TRUSTED_DOCUMENTS, mode: env.TRUSTED_DOCUMENTS_MODE },
    maxItemsPerUser: env.MAX_ITEMS_PER_USER,
    maxBlogEntriesPerUser: env.MAX_BLOG_ENTRIES_PER_USER,
    maxConnections: env.MAX_CONNECTIONS,
    maxRequestsInFlight: env.MAX_REQUESTS_IN_FLIGHT,
    maxLiveConnections: env.MAX_LIVE_CONNECTIONS,
    maxLivePerAddress: env.MAX_LIVE_PER_ADDRESS,
    maxSubscriptionsPerAddress: env.MAX_SUBSCRIPTIONS_PER_ADDRESS,
    maxSubscriptionsPerSocket: env.MAX_SUBSCRIPTIONS_PER_SOCKET,
    requestDeadlineMs: env.REQUEST_DEADLINE_MS,
    shortcuts: env.SHORTCUTS,
    explorer: env.GRAPHQL_EXPLORER ?? embedded,
    trustProxy: env.TRUST_PROXY,
    metricsHost: env.METRICS_HOST,
    /** Absent where metrics are off. */
    metricsPort: env.METRICS_PORT,
    shutdownSeconds: env.SHUTDOWN_SECONDS,
    /** Absent where no traces are sent. */
    otlpEndpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT,
    serviceName: env.OTEL_SERVICE_NAME,
    tracedShare: env.OTEL_TRACES_SAMPLER_ARG,
    logRequests: env.LOG_REQUESTS,
    logLevel: env.LOG_LEVEL,
  };
});

/**
 * Reads the configuration from the environment. Where SIGNING_SECRET is unset, `secretFor` may supply one.
 * Throws ConfigError, which names every problem at once: those of settings by themselves, or else those of settings together.
 */
export function readConfig(env: NodeJS.ProcessEnv, secretFor: (config: Omit<Config, 'signingSecrets'>) => string | undefined): Config {
  // An empty variable counts as unset: that is how compose files and CI systems hand over what nobody has set.
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = schema.safeParse(set);
  if (!result.success) throw new ConfigError(result.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`));
  const problems = [...mismatches(result.data, set)];
  if (problems.length > 0) throw new ConfigError(problems);
  // Last, for it may have one made.
  const made = result.data.signingSecrets === undefined ? secretFor(result.data) : undefined;
  const signingSecrets = result.data.signingSecrets ?? (made === undefined ? undefined : [made]);
  if (!signingSecrets) throw new ConfigError([`SIGNING_SECRET is needed with DATABASE_URL, and ${SECRET_RULE}`]);
  return { ...result.data, signingSecrets };
}

/** What does not go together, of settings that are each good by themselves. */
function* mismatches(
  { databaseUrl, replicaUrls, trustedDocuments, smtpUrl, registration, passwordReset }: z.output<typeof schema>,
  set: Readonly<NodeJS.ProcessEnv>,
): Generator<string> {
  if (set['SIGNING_SECRET'] !== undefined && set['SIGNING_SECRETS'] !== undefined) {
    yield 'SIGNING_SECRETS takes the place of SIGNING_SECRET: set one of the two';
  }
  if (databaseUrl === undefined && replicaUrls.length > 0)
    yield 'DATABASE_REPLICA_URLS names replicas of a database: set DATABASE_URL, too';
  const { mode, files: manifests } = trustedDocuments;
  if (mode !== 'off' && manifests.length === 0) yield `TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=${mode}`;
  if (smtpUrl !== undefined && set['MAIL_FROM'] === undefined) yield 'MAIL_FROM is needed with SMTP_URL';
  if (smtpUrl !== undefined || databaseUrl === undefined) return;
  // A token in a file beside the database is for whoever tries things out; in earnest it goes to its recipient and nobody else.
  if (registration) yield 'SMTP_URL is needed with DATABASE_URL and REGISTRATION=on';
  if (passwordReset) yield 'SMTP_URL is needed with DATABASE_URL and PASSWORD_RESET=on';
}

// RFC 9745, 4. Looked at beside all else that may be wrong, so the dates may be none yet.
function refuseEarlySunset(version: 'V1' | 'V2') {
  const [deprecatedOn, sunsetOn] = [`${version}_DEPRECATED_ON`, `${version}_SUNSET_ON`] as const;
  return z.refine<z.output<typeof environment>>((env) => !(Number(env[deprecatedOn]) > Number(env[sunsetOn])), {
    path: [sunsetOn],
    error: `must not be before ${deprecatedOn}`,
    when: () => true,
  });
}

function list(separator = /[\s,]+/) {
  return z.string().transform((text) =>
    text
      .trim()
      .split(separator)
      .filter((part) => part !== ''),
  );
}

// Under these, the session router's login would take the place of another.
function isFreePrefix(prefix: string): boolean {
  return prefix !== '' && prefix !== '/api/v2/auth';
}

// By who will read it; of names that it has for networks, we take none.
function isNetwork(text: string): boolean {
  try {
    proxyaddr.compile(text);
    return isIP(text.split('/', 1)[0] ?? '') !== 0;
  } catch {
    return false;
  }
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
