import { describe, expect, test } from '../support/jest.ts';
import { ConfigError, readConfig, settingNames } from '../../src/core/config.ts';
import { redactor } from '../../src/core/redact.ts';
import { startupBanner } from '../../src/cli/startup-banner.ts';
import { SCOPES } from '../../src/core/scopes.ts';
import { TEST_SECRET } from '../support/databases.ts';

const DATABASE_URL = 'postgresql://user@127.0.0.1:1/shop';
const REPLICA = 'postgresql://reader@replica.example/shopfront';
const SECRET = { SIGNING_SECRET: TEST_SECRET };
const ONE_HOST = 'must be one URL with one host, such as a load balancer';
const POSTGRESQL = 'must be a URL such as postgresql://user@host/name';

/** Settings that accept any text. */
const ANY_TEXT = ['HOST', 'DATA_DIR', 'JWT_ISSUER', 'JWT_AUDIENCE', 'METRICS_HOST'];

/** Whole numbers, with minimum and maximum. */
const NUMBERS: Readonly<Record<string, readonly [number, number]>> = {
  PORT: [0, 65_535],
  DATABASE_POOL_MAX: [1, 1000],
  SESSION_IDLE_DAYS: [1, 3650],
  SESSION_LIFETIME_DAYS: [1, 3650],
  REFRESH_REUSE_SECONDS: [0, 300],
  BCRYPT_COST: [10, 16],
  LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: [1, 1_000_000],
  JWT_LEEWAY_SECONDS: [0, 300],
  PUBLIC_MAX_AGE_SECONDS: [0, 31_536_000],
  CHANGE_LOG_RETENTION_DAYS: [1, 3650],
  AUDIT_RETENTION_DAYS: [1, 36_500],
  DEFAULT_PAGE_SIZE: [1, 1000],
  GRAPHQL_MAX_COST: [1, 100_000_000],
  MAX_ITEMS_PER_USER: [1, 1_000_000],
  MAX_CONNECTIONS: [1, 1_000_000],
  MAX_REQUESTS_IN_FLIGHT: [1, 1_000_000],
  MAX_SUBSCRIPTION_CONNECTIONS: [0, 1_000_000],
  MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: [1, 1_000_000],
  REQUEST_TIMEOUT_MS: [100, 600_000],
  METRICS_PORT: [1, 65_535],
  SHUTDOWN_TIMEOUT_SECONDS: [1, 600],
};

/** All other settings: invalid values, and the problem. */
const REJECTED: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  BASE_PATH: ['/shop/', '/', 'shop', '/a b'].map((value) => [
    value,
    'must be empty or a path such as /shop, without a trailing slash',
  ]),
  PUBLIC_URL: ['shop.example', 'ftp://shop.example'].map((value) => [
    value,
    'must be a URL such as https://shop.example',
  ]),
  DATABASE_URL: [
    ...['mysql://u@127.0.0.1/x', 'shop'].map((value) => [value, POSTGRESQL] as const),
    ['postgresql://u@one,two/x', ONE_HOST],
  ],
  DATABASE_REPLICA_URL: [
    ['postgresql://u@one,two/x', ONE_HOST],
    ['mysql://u@127.0.0.1/x', POSTGRESQL],
  ],
  DATABASE_POOLER: [['session', 'must be one of none, transaction']],
  SIGNING_SECRET: [
    ['short-secret', 'must have 32 bytes or more'],
    [', ,', 'must have 32 bytes or more'],
    [`${TEST_SECRET},short-secret`, 'must have 32 bytes or more'],
    [
      Array.from({ length: 9 }, (_, index) => `${TEST_SECRET}-${index}`).join(),
      'must contain at most 8 secrets',
    ],
  ],
  SESSION_PREFIX: [
    ['session', 'must be empty or a path such as /shop, without a trailing slash'],
    ['/api/v2/auth', 'must be a path such as /session, but not /api/v2/auth'],
  ],
  COMPRESSION: [['true', 'must be on or off']],
  REGISTRATION: [['true', 'must be on or off']],
  PASSWORD_RESET: [['yes', 'must be on or off']],
  ACCOUNT_URL: [
    ['shop.example', 'must be a URL such as https://shop.example/account'],
    ['https://shop.example/#/account', 'must not have a fragment: links carry the token there'],
  ],
  SMTP_URL: [['http://mail.example', 'must be a URL such as smtps://user:password@mail.example']],
  MAIL_FROM: ['shop', 'a\nBcc: b@shop.example', 'Shop <shop>'].map((value) => [
    value,
    'must be an address such as Shop <shop@shop.example>',
  ]),
  ANONYMOUS_SCOPES: [
    ['products:write,root', `must be a list of these scopes: ${SCOPES.join(', ')}`],
  ],
  LEGACY_QUERY_LOGIN: [['on', 'must be true or false']],
  ...Object.fromEntries(
    ['V1_DEPRECATION', 'V2_DEPRECATION'].map((name) => [
      name,
      [
        ...[
          '2027-02-30',
          'tomorrow',
          '/2027-01-31',
          '2027-01-31/',
          '2027-01-31/2027-02-30',
          '2027-01-31/2027-07-31/2027-12-31',
        ].map(
          (value) =>
            [
              value,
              'must be a date such as 2027-01-31, or an interval such as 2027-01-31/2027-07-31',
            ] as const,
        ),
        ['2027-01-31/2027-01-30', 'must not have the removal before the deprecation'] as const,
      ],
    ]),
  ),
  WEBHOOK_ALLOW_PRIVATE_NETWORKS: [['1', 'must be true or false']],
  TRUSTED_DOCUMENTS_MODE: [['on', 'must be one of off, enforce']],
  GRAPHQL_EXPLORER: [['no', 'must be true or false']],
  TRUST_PROXY: ['0.0.0.0/0', '10.0.0.0/8/9', 'loopback', '10.0.0.0/33'].map((value) => [
    value,
    'must be a list of addresses and networks such as 10.0.0.0/8',
  ]),
  OTEL_EXPORTER_OTLP_ENDPOINT: [
    ['collector.example', 'must be a URL such as http://collector.example:4318'],
  ],
  LOG_FORMAT: [['text', 'must be auto, json or pretty']],
  LOG_LEVEL: [['loud', 'must be a level of the log']],
};

describe('a single setting', () => {
  test.each(Object.entries(NUMBERS))(
    '%s accepts only whole numbers from its minimum to its maximum',
    (name, [min, max]) => {
      for (const value of [min, max])
        expect(problemsOf({ ...SECRET, [name]: String(value) })).toEqual([]);
      for (const value of [min - 1, max + 1]) {
        const problem = value < 0 ? 'must be a whole number' : `must be from ${min} to ${max}`;
        expect(problemsOf({ ...SECRET, [name]: String(value) })).toEqual([`${name} ${problem}`]);
      }
      for (const value of ['x', '1.5', '1e3', ' 1', '0x10', '9999999999']) {
        expect(problemsOf({ ...SECRET, [name]: value })).toEqual([
          `${name} must be a whole number`,
        ]);
      }
    },
  );

  test.each(
    Object.entries(REJECTED).flatMap(([name, values]) =>
      values.map(([value, problem]) => ({ name, value, problem })),
    ),
  )('$name=$value is rejected: it $problem', ({ name, value, problem }) => {
    expect(problemsOf({ ...SECRET, [name]: value })).toEqual([`${name} ${problem}`]);
  });

  test('every setting that can be rejected is listed here', () => {
    // An unreadable file is rejected when it is read (server/trusted-documents.test.ts).
    expect(
      new Set([
        ...ANY_TEXT,
        'TRUSTED_DOCUMENTS',
        ...Object.keys(NUMBERS),
        ...Object.keys(REJECTED),
      ]),
    ).toEqual(new Set(settingNames));
  });

  test('may have blanks at its end, as a file with CR LF gives', () => {
    const { port, jwtIssuer } = readConfig(
      { ...SECRET, PORT: '80\r', JWT_ISSUER: 'me \r\n' },
      () => undefined,
    );
    expect([port, jwtIssuer]).toEqual([80, 'me']);
    expect(problemsOf({ ...SECRET, PORT: ' \r' })).toEqual([]);
  });

  test('that is empty counts as unset', () => {
    expect(
      problemsOf({
        ...SECRET,
        ...Object.fromEntries(settingNames.map((name) => [name, ''])),
        ...SECRET,
      }),
    ).toEqual([]);
  });
});

describe('settings together', () => {
  test.each<[string, Record<string, string>, string[]]>([
    [
      'a database and no secret',
      { DATABASE_URL },
      ['SIGNING_SECRET is needed with DATABASE_URL, and must have 32 bytes or more'],
    ],
    [
      'a replica of no database',
      { ...SECRET, DATABASE_REPLICA_URL: REPLICA },
      ['DATABASE_URL is needed with DATABASE_REPLICA_URL'],
    ],
    [
      'trusted documents in enforce mode with an empty list',
      { ...SECRET, TRUSTED_DOCUMENTS_MODE: 'enforce', TRUSTED_DOCUMENTS: ' , ' },
      ['TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=enforce'],
    ],
    [
      'registration and reset on a database, without a mail server, and documents without a file',
      {
        ...SECRET,
        DATABASE_URL,
        REGISTRATION: 'on',
        PASSWORD_RESET: 'on',
        TRUSTED_DOCUMENTS_MODE: 'enforce',
      },
      [
        'TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=enforce',
        'SMTP_URL is needed with DATABASE_URL and REGISTRATION=on',
        'SMTP_URL is needed with DATABASE_URL and PASSWORD_RESET=on',
      ],
    ],
    [
      'a mail server and no sender',
      { ...SECRET, SMTP_URL: 'smtp://mail.example' },
      ['MAIL_FROM is needed with SMTP_URL'],
    ],
  ])('%s: is rejected', (_what, env, problems) => {
    expect(problemsOf(env)).toEqual(problems);
  });
});

describe('the error', () => {
  test('has every problem of single settings at once', () => {
    expect(problemsOf({ PORT: 'abc', BCRYPT_COST: '4', SIGNING_SECRET: 'x' })).toEqual([
      'PORT must be a whole number',
      'SIGNING_SECRET must have 32 bytes or more',
      'BCRYPT_COST must be from 10 to 16',
    ]);
  });

  test('contains no secret, and no password of a mail server', () => {
    expect(
      problemsOf({ SIGNING_SECRET: `short-secret,${TEST_SECRET},short-secret` }).join(),
    ).not.toMatch(new RegExp(`short-secret|${TEST_SECRET}`));
    const SMTP_URL = 'smtps://shop:pass-of-mail@mail.example';
    expect(problemsOf({ DATABASE_URL, ...SECRET, SMTP_URL, REGISTRATION: 'on' })).toEqual([
      'MAIL_FROM is needed with SMTP_URL',
    ]);
    expect(redactor({ smtpUrl: SMTP_URL })(`535 pass-of-mail ${SMTP_URL}`)).not.toContain(
      'pass-of-mail',
    );
  });
});

test('the name of a property is the name of its setting in camel case', () => {
  const { databasePoolMax, loginFailuresPerAccountPer10Minutes } = readConfig(
    {
      ...SECRET,
      DATABASE_POOL_MAX: '60',
      LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '7',
    },
    () => undefined,
  );
  expect([databasePoolMax, loginFailuresPerAccountPer10Minutes]).toEqual([60, 7]);
});

test('limits follow from settings: of statements, and of failed logins of an address', () => {
  const env = { REQUEST_TIMEOUT_MS: '2000', LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '7' };
  expect(readConfig({ ...SECRET, ...env }, () => undefined)).toMatchObject({
    databaseStatementTimeoutMs: 2_000,
    loginFailuresPerAddressPer10Minutes: 70,
  });
});

test('one secret or several, separated by commas, are a list', () => {
  const [one, other] = [`${TEST_SECRET} with spaces`, `${TEST_SECRET}-2`];
  expect(readConfig({ SIGNING_SECRET: one }, () => undefined).signingSecrets).toEqual([one]);
  expect(
    readConfig({ SIGNING_SECRET: `${one}, ${other}` }, () => undefined).signingSecrets,
  ).toEqual([one, other]);
});

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['shop.internal', 'shop.internal'],
  ['::1', '[::1]'],
  ['2001:DB8:0::5', '[2001:db8::5]'],
  ['0.0.0.0', 'localhost'],
  ['::', 'localhost'],
  ['::0', 'localhost'],
])(
  'URLs with HOST=%s have the host %s, in links and at startup (RFC 3986, 3.2.2)',
  (HOST, host) => {
    for (const env of [{}, { DATABASE_URL }]) {
      const config = readConfig({ ...SECRET, ...env, HOST }, () => undefined);
      expect(config).toMatchObject({ host: HOST, publicUrl: `http://${host}:4000` });
      const urls = startupBanner(config, 4001).match(/http:\/\/[^\s',]+/g) ?? [];
      expect(new Set(urls.map((url) => new URL(url).host))).toEqual(new Set([`${host}:4001`]));
    }
  },
);

/** Returns the problems of these settings. */
function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env, () => undefined);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
