import { afterAll, afterEach, beforeAll, describe, expect, test } from './support/jest.ts';
import * as accounts from '../src/features/auth/user-administration.service.ts';
import * as apiKeys from '../src/features/api-keys/api-key.service.ts';
import { newSecretKey } from '../src/core/secret-key.ts';
import { inTransaction } from '../src/request/context.ts';
import { claimsOf, forge, leaksIn, seconds } from './support/forge.ts';
import { closeStreams } from './support/events.ts';
import { closeSockets } from './support/sockets.ts';
import { openSession, type SessionCredentials } from './support/logins.ts';
import { PASSWORD, Shop, useShop } from './support/shop.ts';
import { ANONYMOUS, WAYS_IN } from './support/ways-in.ts';

// One suite for every way into the shop. What differs between them is tested in test/server.

const shop = useShop();
/** A second instance on the same database. */
const secondShop = new Shop();
beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());
afterEach(() => {
  closeSockets();
  closeStreams();
});

const DAY = 86_400_000;
const REJECTED = 'Could not validate credentials';
const INACTIVE = 'Inactive user';

/** Every kind of credentials of one user. */
interface Credentials extends SessionCredentials {
  /** A token that belongs to no session. */
  plainToken: string;
  apiKey: string;
  other: SessionCredentials;
}

async function makeCredentials(): Promise<Credentials> {
  const opened = await openSession(shop, await shop.makeUser({ username: 'alice' }));
  const made = await apiKeys.createFor(shop.context(), opened.user, {
    name: 'till',
    scopes: [],
    expiresAt: new Date(shop.now().getTime() + DAY),
  });
  return {
    ...opened,
    plainToken: shop.tokenOf(opened.user),
    apiKey: made.key,
    other: await openSession(shop),
  };
}

type MakeHeaders = (made: Credentials) => Record<string, string>;
const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });
const claims = (values: Record<string, unknown>): MakeHeaders => {
  return ({ user }) => bearer(forge(claimsOf(shop, user, values)));
};

// [case, headers, username or error]
const CASES: [string, MakeHeaders, string][] = [
  ['J1 a token of a session', ({ token }) => bearer(token), 'alice'],
  ['J1 a token without a session', ({ plainToken }) => bearer(plainToken), 'alice'],
  [
    'J31 the scheme in another case',
    ({ token }) => ({ Authorization: `bEARER  ${token}` }),
    'alice',
  ],
  ['K3 an API key', ({ apiKey }) => bearer(apiKey), 'alice'],
  ['S10 X-SESSION-ID', ({ key }) => ({ 'X-SESSION-ID': key }), 'alice'],
  ['S10 X-SESSIONID', ({ key }) => ({ 'X-SESSIONID': key }), 'alice'],
  ['S10 both', ({ key }) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': key }), 'alice'],

  ['no credentials', () => ({}), ANONYMOUS],
  ['J31 an empty header', () => ({ Authorization: '' }), ANONYMOUS],
  ['J31 a scheme alone', () => ({ Authorization: 'Bearer' }), ANONYMOUS],
  ['J31 no scheme', ({ token }) => ({ Authorization: token }), ANONYMOUS],
  ['J31 two words', ({ token }) => ({ Authorization: `Bearer a ${token}` }), ANONYMOUS],
  ['J31 another scheme', ({ token }) => ({ Authorization: `DPoP ${token}` }), ANONYMOUS],
  ['J31 HTTP Basic', () => ({ Authorization: `Basic ${btoa(`alice:${PASSWORD}`)}` }), ANONYMOUS],
  ['J32 another header', ({ token }) => ({ 'X-Access-Token': `Bearer ${token}` }), ANONYMOUS],
  [
    'J32 a cookie',
    ({ token, key }) => ({ Cookie: `access_token=${token}; X-SESSION-ID=${key}` }),
    ANONYMOUS,
  ],
  ['K3 an API key in another header', ({ apiKey }) => ({ 'X-API-Key': apiKey }), ANONYMOUS],
  [
    'Authorization decides: HTTP Basic beside a session key',
    ({ key }) => ({ Authorization: 'Basic eDp5', 'X-SESSION-ID': key }),
    ANONYMOUS,
  ],

  ['S8 an unknown session key', () => ({ 'X-SESSION-ID': newSecretKey() }), ANONYMOUS],
  ['S9 a session key in capitals', ({ key }) => ({ 'X-SESSION-ID': key.toUpperCase() }), ANONYMOUS],
  ['K3 an API key as a session key', ({ apiKey }) => ({ 'X-SESSION-ID': apiKey }), ANONYMOUS],
  [
    'S10 two session keys',
    ({ key, other }) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': other.key }),
    ANONYMOUS,
  ],
  [
    'S10 an empty session key',
    ({ key }) => ({ 'X-SESSION-ID': '', 'X-SESSIONID': key }),
    ANONYMOUS,
  ],

  ['J9 a text that is no token', () => bearer('x'), REJECTED],
  [
    'Authorization decides: an invalid token beside a session key',
    ({ key }) => ({ ...bearer('x'), 'X-SESSION-ID': key }),
    REJECTED,
  ],
  ['J13 an expired token', (made) => claims({ exp: seconds(shop) })(made), REJECTED],
  ['J22 a refresh token', ({ refreshToken }) => bearer(refreshToken), REJECTED],
  ['J24 a user who never existed', claims({ sub: 'nobody' }), REJECTED],
  ['J24 the name of a user in another case', claims({ sub: 'ALICE' }), REJECTED],
  ['J24 a name that is SQL', claims({ sub: "alice' or '1'='1" }), REJECTED],
  ['J24 a session id that is SQL', claims({ sid: "' or 1=1 --" }), REJECTED],
  ["J24 another user's session", (made) => claims({ sid: made.other.sid })(made), REJECTED],
  ['K3 an unknown API key', () => bearer(`sk_${newSecretKey()}`), REJECTED],
  [
    'K3 an API key without its last character',
    ({ apiKey }) => bearer(apiKey.slice(0, -1)),
    REJECTED,
  ],
  ['K3 an API key without its prefix', ({ apiKey }) => bearer(apiKey.slice(3)), REJECTED],
];

/** Ways in which credentials that were accepted end, and the outcome of each kind afterwards. */
const ENDS: [string, (made: Credentials) => Promise<unknown>, Partial<Record<Kind, string>>][] = [
  ['S6 a logout by REST', ({ key }) => logout(key), ofSession(ANONYMOUS, REJECTED)],
  [
    'S6 a logout by GraphQL',
    ({ token }) => shop.graphql('mutation { logout { ended } }', {}, { token }),
    ofSession(ANONYMOUS, REJECTED),
  ],
  [
    'S6 the end of all sessions',
    ({ token }) => shop.graphql('mutation { logoutEverywhere { ended } }', {}, { token }),
    ofSession(ANONYMOUS, REJECTED),
  ],
  [
    'S6 a change of the password in another session',
    ({ plainToken }) =>
      shop.graphql(
        'mutation ($p: String!) { changePassword(current: $p, new: "a new password") { id } }',
        { p: PASSWORD },
        { token: plainToken },
      ),
    ofSession(ANONYMOUS, REJECTED),
  ],
  [
    'J26 disabling the user',
    ({ user }) => accounts.setDisabled(secondShop.context(), user.username, true),
    { ...ofSession(INACTIVE, INACTIVE), plainToken: INACTIVE, apiKey: INACTIVE },
  ],
  [
    'S14 disabling and enabling the user',
    // At once, so that no check of open subscriptions meets the disabled user.
    ({ user }) =>
      inTransaction(secondShop.context(), async (tx) => {
        await accounts.setDisabled(tx, user.username, true);
        await accounts.setDisabled(tx, user.username, false);
      }),
    ofSession(ANONYMOUS, REJECTED),
  ],
  [
    'J24 deleting the user',
    ({ user }) => shop.sql(`delete from "user" where pk = ${user.pk}`),
    { ...ofSession(ANONYMOUS, REJECTED), plainToken: REJECTED, apiKey: REJECTED },
  ],
  [
    'K3 revoking the API key',
    ({ user }) => apiKeys.revokeOf(shop.context(), user.pk),
    { apiKey: REJECTED },
  ],
];

const KINDS = {
  key: (made) => ({ 'X-SESSION-ID': made.key }),
  token: (made) => bearer(made.token),
  plainToken: (made) => bearer(made.plainToken),
  apiKey: (made) => bearer(made.apiKey),
} satisfies Record<string, MakeHeaders>;
type Kind = keyof typeof KINDS;

function ofSession(key: string, token: string): Partial<Record<Kind, string>> {
  return { key, token };
}

function logout(session_key: string) {
  return shop.rest('POST', '/session/logout', { json: { session_key } });
}

describe.each(WAYS_IN)('$name', ({ caller, watch, select, send }) => {
  test.each(CASES)('%s', async (_what, makeHeaders, expected) => {
    const made = await makeCredentials();
    const headers = makeHeaders(made);
    expect(await caller(shop, headers)).toBe(expected);
    expect(
      leaksIn(
        shop,
        Object.values(headers).flatMap((text) => text.split(/[ .=;]/)),
      ),
    ).toEqual([]);
  });

  test.each(ENDS)('%s counts at once, on every instance', async (_what, end, expected) => {
    const made = await makeCredentials();
    const outcomes = async (at: Shop) => {
      const found: Record<string, string> = {};
      for (const [kind, makeHeaders] of Object.entries(KINDS))
        found[kind] = await caller(at, makeHeaders(made));
      return found;
    };
    const before = { key: 'alice', token: 'alice', plainToken: 'alice', apiKey: 'alice' };
    // Either instance may cache them.
    for (const at of [secondShop, shop]) expect(await outcomes(at)).toEqual(before);
    await end(made);
    for (const at of [secondShop, shop])
      expect(await outcomes(at)).toEqual({ ...before, ...expected });
  });

  test('J25 of a disabled user, only valid credentials show that', async () => {
    const token = shop.tokenOf(await shop.makeUser({ disabled: true }));
    expect(await caller(shop, bearer(token))).toBe(INACTIVE);
    expect(await caller(shop, bearer(`${token}x`))).toBe(REJECTED);
  });

  test('S13 a session ends after 14 idle days, an API key at its time', async () => {
    const made = await makeCredentials();
    shop.advanceClock(14 * DAY);
    expect(await caller(shop, KINDS.key(made))).toBe(ANONYMOUS);
    expect(await caller(shop, KINDS.apiKey(made))).toBe(REJECTED);
  });

  test('D21 an internal error is masked, and described only in the log', async () => {
    const { key } = await makeCredentials();
    await shop.sql('alter table session rename to session_away');
    try {
      expect(await caller(shop, { 'X-SESSION-ID': key })).toBe('Internal server error');
    } finally {
      await shop.sql('alter table session_away rename to session');
    }
    expect(shop.logged.some((line) => line.includes('does not exist'))).toBe(true);
  });

  if (watch)
    test.each([
      ...ENDS.filter(([what]) => /by REST|the user|API key/.test(what)),
      [
        'S13 the expiry of its credentials',
        async () => shop.advanceClock(14 * DAY),
        { key: ANONYMOUS, token: REJECTED, plainToken: REJECTED, apiKey: REJECTED },
      ] satisfies (typeof ENDS)[number],
    ])('%s ends open subscriptions, and no others', async (_what, end, expected) => {
      const made = await makeCredentials();
      const open = new Map<Kind, () => Promise<string>>();
      for (const kind of Object.keys(KINDS) as Kind[])
        open.set(kind, await watch(shop, KINDS[kind](made)));
      await end(made);
      for (const [kind, message] of Object.entries(expected) as [Kind, string][])
        expect([kind, await open.get(kind)?.()]).toEqual([
          kind,
          message === INACTIVE ? 'INACTIVE_USER' : 'UNAUTHENTICATED',
        ]);
    });

  if (send)
    test('R4 a body that is too large is 413', async () => {
      expect(await send(shop, 200_000)).toBe(413);
    });

  if (select)
    test.each([
      ['nothing unusual', 'pk', ''],
      ['D4 15 aliases', repeated(15, (at) => `a${at}: pk`), ''],
      ['D4 16 aliases', repeated(16, (at) => `a${at}: pk`), 'QUERY_TOO_COMPLEX'],
      ['D9 50 directives', repeated(50, () => 'pk @skip(if: false)'), ''],
      ['D9 51 directives', repeated(51, () => 'pk @skip(if: false)'), 'QUERY_TOO_COMPLEX'],
      ['D12 more than 1,000 tokens', repeated(1_000, () => 'pk'), 'GRAPHQL_PARSE_FAILED'],
      ['D16 a misspelt field', 'pkk', 'GRAPHQL_VALIDATION_FAILED'],
      ['invalid syntax', '{', 'GRAPHQL_PARSE_FAILED'],
    ])('%s', async (_what, fields, code) => {
      expect(await select(shop, fields)).toBe(code);
    });
});

function repeated(count: number, make: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => make(index)).join(' ');
}
