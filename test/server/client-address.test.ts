import { afterAll, afterEach, beforeAll, describe, expect, test } from '../support/jest.ts';
import { closeStreams, openSubscription } from '../support/events.ts';
import { PASSWORD, Shop, codes, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';

const SETTINGS = {
  ANONYMOUS_SCOPES: 'products:write',
  LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3',
  MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: '2',
  PASSWORD_RESET: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
  TRUST_PROXY: '127.0.0.1,10.0.0.0/8,2001:db8:ffff::/48',
};
const shop = useShop(SETTINGS, { mailRequestsPerAddressPerHour: 2 });

const OTHER = '198.51.100.7:6000';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const PRODUCTS = 'subscription { productChanged { pk } }';

type Headers = Record<string, string>;
const by = (address: string): Headers => ({ 'X-Forwarded-For': address });
const byForwarded = (value: string): Headers => ({ Forwarded: value });

afterEach(() => {
  closeSockets();
  closeStreams();
});

const login = async (username: string, password: string, headers: Headers) =>
  (await shop.rest('POST', '/token', { form: { username, password }, headers })).status;

/** Whether failed logins with these headers block logins of the same account with the others. */
async function isSameClient(headers: Headers, others: Headers): Promise<boolean> {
  const { username } = await shop.makeUser();
  for (let count = 0; count < 3; count++) expect(await login(username, 'wrong', headers)).toBe(401);
  // Nobody can lock out others.
  expect(await login(username, PASSWORD, by(OTHER))).toBe(200);
  return (await login(username, PASSWORD, others)) === 429;
}

const IPV4 = '203.0.113.20';
const IPV4_SPELLINGS = [
  '203.0.113.20:5001',
  '203.0.113.20:_gazonk',
  '"203.0.113.20:5001"',
  '::ffff:203.0.113.20',
  '::FFFF:CB00:7114',
  '0:0:0:0:0:ffff:cb00:7114',
  '[::ffff:203.0.113.20]:443',
  '[::ffff:cb00:7114]',
  '64:ff9b::203.0.113.20',
  'unknown, 203.0.113.20:1',
  '192.0.2.1,,203.0.113.20:1, ,',
];
const IPV6 = '2001:db8:0:1::1';
const IPV6_SPELLINGS = [
  '[2001:db8:0:1::1]',
  '[2001:db8:0:1::1]:443',
  '[2001:DB8:0:1::1]:_x',
  '2001:0DB8:0000:0001:0000:0000:0000:0001',
  '2001:db8:0:1::192.0.2.1',
  '2001:db8:0:1:ffff::',
  '2001:db8:0:1::1%eth0',
  '[2001:db8:0:1::1%25eth0]:443',
];

describe('X-Forwarded-For of a trusted proxy', () => {
  test.each([
    ...IPV4_SPELLINGS.map((spelling) => [spelling, IPV4]),
    ...IPV6_SPELLINGS.map((spelling) => [spelling, IPV6]),
  ] as [string, string][])('%s is the client %s', async (spelling, address) => {
    expect(await isSameClient(by(spelling), by(address))).toBe(true);
  });

  test.each([
    ['203.0.113.20:5001', '203.0.113.21:5001'],
    ['[2001:db8:0:1::1]:443', '[2001:db8:0:2::1]:443'],
    ['64:ff9b::203.0.113.20', '64:ff9b::203.0.113.21'],
  ])('%s and %s are two clients', async (one, other) => {
    expect(await isSameClient(by(one), by(other))).toBe(false);
  });

  test.each([
    'unknown',
    '_hidden',
    'evil.example',
    '1.2.3.4.5',
    '999.1.1.1',
    '010.1.1.1',
    '0x7f.1',
    '16909060',
    '1.2.3.4:999999',
    '1.2.3.4:',
    '[2001:db8::1',
    '[2001:db8::1]x',
    '203.0.113.9, unknown',
    ',',
  ])('"%s" is no address: the client is the proxy', async (text) => {
    expect(await isSameClient(by(text), {})).toBe(true);
  });

  test.each([
    ['203.0.113.20, 10.0.0.1:443', IPV4],
    ['203.0.113.20:1, [2001:db8:ffff::1]:443, ::ffff:10.0.0.1', IPV4],
    ['203.0.113.9, 203.0.113.20:1', IPV4],
    ['203.0.113.9, unknown, 10.0.0.1:443', '10.0.0.1'],
  ])('of "%s", the client is the last that is no proxy: %s', async (chain, address) => {
    expect(await isSameClient(by(chain), by(address))).toBe(true);
  });
});

describe('Forwarded (RFC 7239) of a trusted proxy', () => {
  test.each([
    ...[IPV4, '"203.0.113.20:5001"', '"[::ffff:203.0.113.20]:443"', '"203.0.113.2\\0"'].map(
      (node) => [`for=${node}`, IPV4],
    ),
    ...['"[2001:db8:0:1::1]"', '"[2001:DB8:0:1::1]:443"', '"[2001:db8:0:1::1]:_x"'].map((node) => [
      `for=${node}`,
      IPV6,
    ]),
    ['For=203.0.113.20;proto=https;by=10.0.0.1', IPV4],
    ['for=203.0.113.20;host="x;for=1.2.3.4"', IPV4],
    ['by=_x; FOR="203.0.113.20"; host="shop.example"', IPV4],
    ['for=203.0.113.9, for=203.0.113.20, for="10.0.0.1:443"', IPV4],
    ['for="203.0.113.9, for=203.0.113.20', IPV4],
  ] as [string, string][])('%s is the client %s', async (value, address) => {
    expect(await isSameClient(byForwarded(value), by(address))).toBe(true);
  });

  test.each([
    'for=unknown',
    'for=_hidden',
    'for="_hidden:_port"',
    'proto=https',
    'for=203.0.113.20;for=203.0.113.21',
    'for=203.0.113.20, for=unknown',
    '203.0.113.20',
    'for="203.0.113.20',
    'for=1.2.3.4;host="x, for=203.0.113.20;x="',
  ])('%s names no address: the client is the proxy', async (value) => {
    expect(await isSameClient(byForwarded(value), {})).toBe(true);
  });

  // A proxy that sets one of the headers may pass on the other one from the client.
  test('X-Forwarded-For alone decides where both are present', async () => {
    const forged = { ...byForwarded('for=192.0.2.1'), ...by('203.0.113.20:1') };
    expect(await isSameClient(forged, by(IPV4))).toBe(true);
    expect(await isSameClient({ ...byForwarded('for=192.0.2.1'), ...by('unknown') }, {})).toBe(
      true,
    );
  });
});

describe('one client by all spellings of its address', () => {
  test('for mails', async () => {
    const ask = (address: string) =>
      shop.graphql(
        'mutation { requestPasswordReset(user: "nobody") }',
        {},
        { headers: by(address) },
      );
    for (const address of ['203.0.113.20:1', '[::ffff:cb00:7114]:2'])
      expect(codes(await ask(address))).toEqual([]);
    expect(codes(await ask(IPV4))).toEqual(['RATE_LIMITED']);
    expect(codes(await ask(OTHER))).toEqual([]);
  });

  test('for WebSockets and event streams', async () => {
    await connectSocket(shop, {}, by('203.0.113.20:1'));
    await openSubscription(shop, PRODUCTS, {}, { headers: byForwarded('for="203.0.113.20:2"') });
    await expect(connectSocket(shop, {}, by(IPV4))).rejects.toThrow('429');
    await connectSocket(shop, {}, by(OTHER));
  });

  test('for idempotency keys of anonymous callers', async () => {
    const create = (address: string, name: string) =>
      shop.graphql(
        CREATE,
        { input: { name, barcode: shop.newBarcode(), price: '1' } },
        { headers: { ...by(address), 'Idempotency-Key': 'k' } },
      );
    expect(codes(await create('203.0.113.20:1', 'Tray'))).toEqual([]);
    expect((await create('[::ffff:203.0.113.20]:2', 'Bowl')).body.errors[0].message).toBe(
      'The key was used for another request',
    );
    expect(codes(await create(OTHER, 'Bowl'))).toEqual([]);
  });

  test.each([
    ['203.0.113.20:5001', IPV4, IPV4],
    ['[::FFFF:CB00:7114]', IPV4, IPV4],
    ['[2001:DB8:A::1%eth0]:443', '2001:db8:a::1', '2001:db8:a::/64'],
    ['unknown', '127.0.0.1', '127.0.0.1'],
  ])('%s in the log is %s, and in the audit trail %s', async (spelling, ip, network) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const { username } = as;
    expect(await login(username, PASSWORD, by(spelling))).toBe(200);
    const entry = shop.logged
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find(({ event }) => event === 'auth.login');
    expect(entry).toMatchObject({ user: username, ip });
    const { pk } = await shop.makeProduct();
    const remove = 'mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }';
    expect(codes(await shop.graphql(remove, { pk }, { as, headers: by(spelling) }))).toEqual([]);
    expect(
      await shop.sql("select network from audit_entry where action = 'product.deleted'"),
    ).toEqual([{ network }]);
  });
});

describe('without TRUST_PROXY', () => {
  const direct = new Shop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' });
  beforeAll(() => direct.start());
  afterAll(() => direct.stop());

  test('no header counts', async () => {
    const form = { username: 'nobody', password: 'wrong' };
    const statuses = [];
    for (const headers of [by(IPV4), byForwarded('for=192.0.2.1'), by(OTHER), {}])
      statuses.push((await direct.rest('POST', '/token', { form, headers })).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
  });
});
