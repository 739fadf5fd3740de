import { afterAll, afterEach, beforeAll, describe, expect, test } from '../support/jest.ts';
import { closeStreams } from '../support/events.ts';
import { PASSWORD, Shop, codes, useShop } from '../support/shop.ts';
import { closeSockets } from '../support/sockets.ts';

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

const OTHER = '198.51.100.7';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';

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
const IPV6 = '2001:db8:0:1::1';

describe('B5 X-Forwarded-For of a trusted proxy', () => {
  test.each([
    ['::ffff:203.0.113.20', IPV4],
    ['::FFFF:CB00:7114', IPV4],
    ['192.0.2.1, 203.0.113.20', IPV4],
    ['203.0.113.20, 10.1.2.3', IPV4],
    ['2001:0DB8:0000:0001:0000:0000:0000:0001', IPV6],
    ['2001:db8:0:1:ffff::', IPV6],
  ])('%s is the client %s', async (spelling, address) => {
    expect(await isSameClient(by(spelling), by(address))).toBe(true);
  });

  test.each(['unknown', 'evil.example', '999.1.1.1', '203.0.113.9:80', '203.0.113.9, unknown'])(
    '"%s" is no address: the client is the proxy',
    async (text) => {
      expect(await isSameClient(by(text), {})).toBe(true);
    },
  );
});

describe('one client by all spellings of its address', () => {
  test('for idempotency keys of anonymous callers', async () => {
    const create = (address: string, name: string) =>
      shop.graphql(
        CREATE,
        { input: { name, barcode: shop.newBarcode(), price: '1' } },
        { headers: { ...by(address), 'Idempotency-Key': 'k' } },
      );
    expect(codes(await create('203.0.113.20', 'Tray'))).toEqual([]);
    expect((await create('::ffff:203.0.113.20', 'Bowl')).body.errors[0].message).toBe(
      'The key was used for another request',
    );
    expect(codes(await create(OTHER, 'Bowl'))).toEqual([]);
  });

  test.each([
    ['::FFFF:CB00:7114', IPV4, IPV4],
    ['2001:DB8:A::1', '2001:db8:a::1', '2001:db8:a::/64'],
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

  test('B5 no header counts', async () => {
    const form = { username: 'nobody', password: 'wrong' };
    const statuses = [];
    for (const headers of [by(IPV4), byForwarded('for=192.0.2.1'), by(OTHER), {}])
      statuses.push((await direct.rest('POST', '/token', { form, headers })).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
  });
});
