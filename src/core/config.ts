import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import proxyaddr from 'proxy-addr';
import { z } from 'zod';
import { SCOPES } from './scopes.ts';

/** The parsed settings, except for the secret. */
type Environment = Omit<z.output<typeof environment>, 'SIGNING_SECRET'>;

/** Property of a setting: `databaseUrl` for `DATABASE_URL`. */
type CamelCase<Name extends string> = Name extends `${infer Word}_${infer Rest}`
  ? `${Lowercase<Word>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>;

type Settings = { [Name in keyof Environment as CamelCase<Name>]: Environment[Name] };
type Derived = ReturnType<typeof derive>;
type Constants = typeof CONSTANTS;

/**
 * The configuration: the value of each setting under its name in camel case, values that follow
 * from settings, and constants.
 */
export interface Config extends Readonly<Omit<Settings, keyof Derived> & Derived & Constants> {
  /** Newest first: the first signs, all verify. */
  readonly signingSecrets: readonly string[];
}

/** Invalid configuration. Names the variable of each problem, but never its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(
      `Invalid configuration:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      options,
    );
  }
}

/** Handling of GraphQL documents that no manifest contains: `off` runs, `enforce` rejects them. */
const TRUST_MODES = ['off', 'enforce'] as const;

/** Connection pooler in front of the database: none, or one in transaction mode. */
const POOLERS = ['none', 'transaction'] as const;

/** Maximum bcrypt cost. A stored hash of a higher cost would block a thread for minutes. */
export const MAX_BCRYPT_COST = 16;

const SECRET_RULE = 'must have 32 bytes or more';
/** Maximum number of signing secrets. A foreign token is checked against each of them. */
const MAX_SECRETS = 8;
/** Of FastAPI's tutorial, which the first clients of the interface followed, and of jwt.io. */
const KNOWN_SECRETS = new Set([
  '09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7',
  'a-string-secret-at-least-256-bits-long',
]);

/** Sender of mails that are only written to files. */
const LOCAL_SENDER = 'shopfront@localhost';

const optionalFlag = z
  .enum(['true', 'false'], 'must be true or false')
  .transform((text) => text === 'true')
  .optional();
const flag = (value: boolean) => optionalFlag.default(value);
const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be from ${min} to ${max}`);
const integerOr = (value: number, min: number, max: number) => integer(min, max).default(value);
const optionalText = z.string().optional();
const onOff = (value: boolean) =>
  z
    .enum(['on', 'off'], 'must be on or off')
    .transform((text) => text === 'on')
    .default(value);
const path = z
  .string()
  .regex(/^(\/[\w.~-]+)*$/, 'must be empty or a path such as /shop, without a trailing slash');
const mailbox = z
  .string()
  .regex(
    /^([^<>@\p{Cc}]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u,
    'must be an address such as Shop <shop@shop.example>',
  )
  .optional();
const url = (protocol: RegExp, example: string) =>
  z.url({ protocol, error: `must be a URL such as ${example}` });
const optionalUrl = (protocol: RegExp, example: string) => url(protocol, example).optional();
const databaseUrl = url(/^postgres(ql)?$/, 'postgresql://user@host/name')
  // The driver would look it up as one name.
  .refine(
    (text) => URL.parse(text)?.host.includes(',') !== true,
    'must be one URL with one host, such as a load balancer',
  )
  .optional();
const secret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, SECRET_RULE)
  .refine((text) => !KNOWN_SECRETS.has(text), 'must not be the secret of a published tutorial');
// File names and secrets may contain spaces.
const textsByComma = list(/\s*,\s*/);
const scopes = list().pipe(
  z.array(z.enum(SCOPES, `must be a list of these scopes: ${SCOPES.join(', ')}`)),
);
const date = z.iso.date(
  'must be a date such as 2027-01-31, or an interval such as 2027-01-31/2027-07-31',
);
/** The date of the deprecation, and the date of the removal if it is known. */
const deprecation = z
  .union([date, z.templateLiteral([date, '/', date])])
  .transform((text) => text.split('/').map((day) => new Date(day)))
  // RFC 9745, 4.
  .refine(
    ([deprecatedOn, removedOn]) => !(Number(deprecatedOn) > Number(removedOn)),
    'must not have the removal before the deprecation',
  )
  .optional();

/** The settings as they are set, with their documentation. */
export const environment = z.object({
  HOST: optionalText.describe(
    'Address to listen on. Default: `127.0.0.1`; `0.0.0.0` with `DATABASE_URL`.',
  ),
  PORT: integerOr(4000, 0, 65_535).describe('TCP port to listen on.'),
  BASE_PATH: path.default('').describe('Path prefix of every route, such as `/shop`.'),
  PUBLIC_URL: optionalUrl(/^https?$/, 'https://shop.example').describe(
    'URL by which clients reach the server. Links in responses and mails start with it. Default: `http://HOST:PORT`.',
  ),
  DATABASE_URL: databaseUrl.describe(
    'URL of a PostgreSQL server, version 15 or newer, or of a load balancer that leads to the primary ([scaling.md](scaling.md#failover)); `sslmode` in the URL selects TLS. Default: the embedded database.',
  ),
  DATABASE_REPLICA_URL: databaseUrl.describe(
    'URL of a read replica of that server, or of a load balancer that excludes lagging replicas, for reads of the catalogue ([scaling.md](scaling.md#4-read-replicas)).',
  ),
  DATABASE_POOLER: z
    .enum(POOLERS, `must be one of ${POOLERS.join(', ')}`)
    .default('none')
    .describe(
      '`transaction` for a connection pooler in transaction mode ([scaling.md](scaling.md#5-connection-pooler)).',
    ),
  DATABASE_POOL_MAX: integerOr(10, 1, 1000).describe('Maximum number of pooled connections.'),
  DATA_DIR: z
    .string()
    .default('data')
    .describe('Directory of the embedded database and its signing secret.'),
  SIGNING_SECRET: textsByComma
    .pipe(
      z
        .array(secret)
        .min(1, SECRET_RULE)
        .max(MAX_SECRETS, `must contain at most ${MAX_SECRETS} secrets`),
    )
    .optional()
    .describe(
      'Secret that signs tokens, 32 bytes or more, or up to 8 secrets, separated by commas: the first signs, all verify ([rotation](operations.md#rotate-signing-secrets)). Required with `DATABASE_URL`. Default: generated and stored in `DATA_DIR`.',
    ),
  SESSION_PREFIX: path
    .refine(isFreePrefix, 'must be a path such as /session, but not /api/v2/auth')
    .default('/session')
    .describe('Path prefix of the session endpoints.'),
  SESSION_IDLE_DAYS: integerOr(14, 1, 3650).describe('Days after which an unused session expires.'),
  SESSION_LIFETIME_DAYS: integerOr(90, 1, 3650).describe('Days after which any session expires.'),
  REFRESH_REUSE_SECONDS: integerOr(10, 0, 300).describe(
    'Seconds during which a used refresh token may be used again, for lost responses. 0 for never.',
  ),
  BCRYPT_COST: integerOr(10, 10, MAX_BCRYPT_COST).describe(
    'bcrypt cost of password hashes. Older hashes are replaced at login.',
  ),
  LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: integerOr(100, 1, 1_000_000).describe(
    'Maximum number of failed logins per account and client address (IPv6: /64) in 10 minutes; ten times as many per client address.',
  ),
  REGISTRATION: onOff(false).describe(
    '`on` allows people to register by email ([operations.md](operations.md#registration-and-password-reset)).',
  ),
  PASSWORD_RESET: onOff(false).describe('`on` allows users to reset their password by email.'),
  ACCOUNT_URL: url(/^https?$/, 'https://shop.example/account')
    .refine((text) => !text.includes('#'), 'must not have a fragment: links carry the token there')
    .optional()
    .describe(
      'Page of the storefront that mails link to, with `#confirm=TOKEN` or `#reset=TOKEN`. Default: `/shop` where the storefront is served; otherwise mails contain the token only.',
    ),
  SMTP_URL: optionalUrl(/^smtps?$/, 'smtps://user:password@mail.example').describe(
    'SMTP server. Required with `DATABASE_URL` for registration and password reset. Default: mails are written to files.',
  ),
  MAIL_FROM: mailbox.describe(
    'Sender of mails. Required with `SMTP_URL`. Default: `shopfront@localhost`.',
  ),
  ANONYMOUS_SCOPES: scopes
    .default([])
    .describe('Scopes of callers without credentials, separated by commas.'),
  JWT_ISSUER: optionalText.describe(
    'Issuer (`iss`) of issued tokens. Required in every accepted token when set.',
  ),
  JWT_AUDIENCE: optionalText.describe(
    'Audience (`aud`) of issued tokens. A token for another audience is always rejected.',
  ),
  JWT_LEEWAY_SECONDS: integerOr(0, 0, 300).describe('Clock skew in seconds accepted in tokens.'),
  LEGACY_QUERY_LOGIN: flag(true).describe(
    'Whether `GET /api/v2/auth/login` accepts a password in the query string.',
  ),
  COMPRESSION: onOff(true).describe(
    'Whether responses are compressed. `off` behind a proxy that compresses.',
  ),
  DEFAULT_PAGE_SIZE: integerOr(100, 1, 1000).describe('Page size where a request has no `limit`.'),
  PUBLIC_MAX_AGE_SECONDS: integerOr(0, 0, 31_536_000).describe(
    'Seconds for which caches may reuse public responses without revalidation.',
  ),
  V1_DEPRECATION: deprecation.describe(
    'Date since which all paths under `/api/v1` are deprecated (`Deprecation` header, RFC 9745), or an interval such as `2027-01-31/2027-07-31`, which ends with their removal (`Sunset` header, RFC 8594).',
  ),
  V2_DEPRECATION: deprecation.describe('The same for paths under `/api/v2`.'),
  CHANGE_LOG_RETENTION_DAYS: integerOr(3, 1, 3650).describe(
    'Days for which changes are kept. Clients can resume from an older cursor only within them.',
  ),
  AUDIT_RETENTION_DAYS: integer(1, 36_500)
    .optional()
    .describe(
      'Days for which entries of the audit trail are kept. Without it they are kept until `audit prune`.',
    ),
  WEBHOOK_ALLOW_PRIVATE_NETWORKS: flag(false).describe(
    'Whether webhooks may use private addresses and plain HTTP ([events.md](events.md)).',
  ),
  GRAPHQL_MAX_COST: integerOr(1_000, 1, 100_000_000).describe(
    'Maximum cost of an operation, about the number of objects that it can return ([graphql.md](graphql.md)).',
  ),
  TRUSTED_DOCUMENTS: textsByComma
    .default([])
    .describe('Manifest files of trusted GraphQL documents, separated by commas.'),
  TRUSTED_DOCUMENTS_MODE: z
    .enum(TRUST_MODES, `must be one of ${TRUST_MODES.join(', ')}`)
    .default('off')
    .describe('Handling of other documents: `off` runs them, `enforce` rejects them.'),
  MAX_ITEMS_PER_USER: integerOr(10_000, 1, 1_000_000).describe(
    'Maximum number of items, and of blog entries, of a user.',
  ),
  MAX_CONNECTIONS: integerOr(5_000, 1, 1_000_000).describe('Maximum number of client connections.'),
  MAX_REQUESTS_IN_FLIGHT: integerOr(640, 1, 1_000_000).describe(
    'Maximum number of requests in progress or waiting. Further requests get 503.',
  ),
  MAX_SUBSCRIPTION_CONNECTIONS: integerOr(2_000, 0, 1_000_000).describe(
    'Maximum number of WebSocket connections and event streams. 0 for none.',
  ),
  MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: integerOr(200, 1, 1_000_000).describe(
    'The same per client address (IPv6: /64).',
  ),
  REQUEST_TIMEOUT_MS: integerOr(10_000, 100, 600_000).describe(
    'Maximum time in ms until the response to a request begins. Then the request gets 503 and its statements are cancelled. Also the maximum duration of a statement, migrations excepted.',
  ),
  GRAPHQL_EXPLORER: optionalFlag.describe(
    'Whether the pages for browsers, introspection and `/openapi.json` are served, and, without `DATABASE_URL`, the storefront at `/shop`. Default: `true`; `false` with `DATABASE_URL`.',
  ),
  TRUST_PROXY: list()
    .refine(
      (parts) => parts.every(isNetwork),
      'must be a list of addresses and networks such as 10.0.0.0/8',
    )
    .default([])
    .describe('Addresses and networks of proxies whose `X-Forwarded-For` is trusted.'),
  METRICS_HOST: z.string().default('127.0.0.1').describe('Address to listen on for metrics.'),
  METRICS_PORT: integer(1, 65_535)
    .optional()
    .describe('TCP port for metrics at `/metrics`. Default: no metrics.'),
  SHUTDOWN_TIMEOUT_SECONDS: integerOr(10, 1, 600).describe(
    'Seconds for which a shutdown waits for requests in progress.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalUrl(/^https?$/, 'http://collector.example:4318').describe(
    'OTLP collector for traces, such as `http://127.0.0.1:4318` ([observability.md](observability.md)). Default: no traces.',
  ),
  LOG_FORMAT: z
    .enum(['auto', 'json', 'pretty'], 'must be auto, json or pretty')
    .default('auto')
    .describe(
      'Format of the log: `json`, `pretty` for people, or `auto`: `pretty` if standard error is a terminal.',
    ),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], 'must be a level of the log')
    .default('info')
    .describe(
      'Lowest level that is logged to standard error: `fatal`, `error`, `warn`, `info`, `debug` or `silent`. Requests are logged at level `info`.',
    ),
});

/** Names of all settings. */
export const settingNames: readonly string[] = Object.keys(environment.shape);

/** Values that are not settings. Tests change them in the configuration. */
const CONSTANTS = {
  /** Whether frequent reads are pipelined on a connection beside the pool. */
  databasePipeline: true,
  /** Maximum time to wait for a connection while no connection becomes free, in ms. */
  databaseAcquireTimeoutMs: 2_000,
  /** Number of threads that hash passwords. More would take CPU time from request handling. */
  passwordHashThreads: Math.min(availableParallelism(), 8),
  /** Maximum number of logins that wait for such a thread. Further logins get 503. */
  passwordHashQueue: 64,
  /** Maximum number of mails that one client address (IPv6: /64) may request in an hour. */
  mailRequestsPerAddressPerHour: 30,
  /** Maximum number of mails of one kind to one recipient in an hour. */
  mailsPerRecipientPerHour: 5,
  /** Days for which the usage of a REST endpoint by a client is kept after its last call. */
  restUsageRetentionDays: 400,
  /** Maximum number of tokens of a GraphQL document. */
  graphqlMaxTokens: 1_000,
  /** Maximum depth of a document. Fragments add no level. */
  graphqlMaxDepth: 8,
  /** Maximum number of aliases of a document. */
  graphqlMaxAliases: 15,
  /** Maximum number of root fields of a document. */
  graphqlMaxRootFields: 10,
  /** Maximum number of directives of a document. */
  graphqlMaxDirectives: 50,
  /** Maximum size of a GraphQL response in bytes. */
  graphqlMaxResponseBytes: 10_000_000,
  /** Maximum number of subscriptions per client address (IPv6: /64). */
  maxSubscriptionsPerAddress: 1_000,
  /** Whether GraphQL queries are compiled. */
  compiledOperations: true as boolean,
};

/**
 * Reads the configuration from the environment. If no signing secret is set, `secretFor` may supply
 * one. Throws ConfigError with all problems of single settings or, if there are none, all
 * conflicts.
 */
export function readConfig(
  env: NodeJS.ProcessEnv,
  secretFor: (config: Omit<Config, 'signingSecrets'>) => string | undefined,
): Config {
  // An empty variable counts as unset, because compose files and CI systems pass unset variables
  // so. Files of variables may end lines with CR LF.
  const set = Object.fromEntries(
    Object.entries(env)
      .map(([name, value]) => [name, value?.trimEnd()] as const)
      .filter(([, value]) => value !== ''),
  );
  const result = environment.safeParse(set);
  if (!result.success)
    throw new ConfigError(
      result.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`),
    );
  const problems = [...findConflicts(result.data)];
  if (problems.length > 0) throw new ConfigError(problems);
  const { SIGNING_SECRET, ...settings } = result.data;
  const config = { ...CONSTANTS, ...inCamelCase(settings), ...derive(settings) };
  // Last, because `secretFor` may create a secret.
  const generated = SIGNING_SECRET ? undefined : secretFor(config);
  const signingSecrets = SIGNING_SECRET ?? (generated === undefined ? undefined : [generated]);
  if (!signingSecrets)
    throw new ConfigError([`SIGNING_SECRET is needed with DATABASE_URL, and ${SECRET_RULE}`]);
  return { ...config, signingSecrets };
}

/** Returns the values that follow from settings, some as defaults. */
function derive(env: Environment) {
  const isEmbedded = env.DATABASE_URL === undefined;
  const host = env.HOST ?? (isEmbedded ? '127.0.0.1' : '0.0.0.0');
  const address = addressOf(host);
  const urlHost = /^(0\.0\.0\.0|\[::\])$/.test(address) ? 'localhost' : address;
  const publicUrl = (env.PUBLIC_URL ?? `http://${urlHost}:${env.PORT}`).replace(/\/$/, '');
  const graphqlExplorer = env.GRAPHQL_EXPLORER ?? isEmbedded;
  const servesStorefront = isEmbedded && graphqlExplorer;
  return {
    host,
    /** The host of URLs that this machine can open. */
    urlHost,
    publicUrl,
    /** Whether PUBLIC_URL is set. */
    isPublicUrlSet: env.PUBLIC_URL !== undefined,
    databaseStatementTimeoutMs: env.REQUEST_TIMEOUT_MS,
    loginFailuresPerAddressPer10Minutes: 10 * env.LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES,
    mailFrom: env.MAIL_FROM ?? LOCAL_SENDER,
    graphqlExplorer,
    /** Whether the storefront is served at `/shop`: with the other pages, on the embedded default. */
    servesStorefront,
    accountUrl:
      env.ACCOUNT_URL ?? (servesStorefront ? `${publicUrl}${env.BASE_PATH}/shop` : undefined),
  };
}

function inCamelCase(settings: Environment): Settings {
  const entries = Object.entries(settings).map(([name, value]) => [
    name.toLowerCase().replace(/_(.)/g, (_, first: string) => first.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as Settings;
}

/** Yields the conflicts between settings that are each valid. */
function* findConflicts(env: Environment): Generator<string> {
  if (env.DATABASE_URL === undefined && env.DATABASE_REPLICA_URL !== undefined)
    yield 'DATABASE_URL is needed with DATABASE_REPLICA_URL';
  if (env.TRUSTED_DOCUMENTS_MODE !== 'off' && env.TRUSTED_DOCUMENTS.length === 0)
    yield `TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=${env.TRUSTED_DOCUMENTS_MODE}`;
  if (env.SMTP_URL !== undefined && env.MAIL_FROM === undefined)
    yield 'MAIL_FROM is needed with SMTP_URL';
  if (env.SMTP_URL !== undefined || env.DATABASE_URL === undefined) return;
  // Mail files contain tokens: acceptable for trials, but in production only the recipient may get
  // one.
  if (env.REGISTRATION) yield 'SMTP_URL is needed with DATABASE_URL and REGISTRATION=on';
  if (env.PASSWORD_RESET) yield 'SMTP_URL is needed with DATABASE_URL and PASSWORD_RESET=on';
}

function list(separator = /[\s,]+/) {
  return z.string().transform((text) =>
    text
      .trim()
      .split(separator)
      .filter((part) => part !== ''),
  );
}

// Under these prefixes, the session router's login would replace another login.
function isFreePrefix(prefix: string): boolean {
  return prefix !== '' && prefix !== '/api/v2/auth';
}

// Checked by proxy-addr, which uses the value. Its named networks are not accepted.
function isNetwork(text: string): boolean {
  try {
    proxyaddr.compile(text);
    return isIP(text.split('/', 1)[0] ?? '') !== 0;
  } catch {
    return false;
  }
}

/** Returns the host as URLs have it: with brackets if it is an IPv6 address, in shortest form. */
export function addressOf(host: string): string {
  const bracketed = host.includes(':') ? `[${host}]` : host;
  return URL.parse(`http://${bracketed}`)?.hostname ?? bracketed;
}
