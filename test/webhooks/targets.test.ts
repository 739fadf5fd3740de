import { describe, expect, jest, test } from '../support/jest.ts';
import { createSocket } from 'node:dgram';
import { Resolver, type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { isIP, type LookupFunction } from 'node:net';
import { DeliveryWorker } from '../../src/features/webhooks/delivery-worker.ts';
import * as deliveries from '../../src/features/webhooks/delivery.service.ts';
import { createHttpClient } from '../../src/features/webhooks/http-client.ts';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { respondWith, Receiver, useReceiver } from '../support/receiver.ts';
import { useShop } from '../support/shop.ts';

const PRIVATE = [
  '127.0.0.1',
  '127.255.255.254',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '192.0.2.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  '2001:db8::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '::127.0.0.1',
  '::10.0.0.1',
];

const shop = useShop();
const receiver = useReceiver();

const STRICT = { webhookAllowPrivateNetworks: false };
const MESSAGE = { headers: { 'Content-Type': 'application/json' }, body: '{}' };
const add = (url: string) => webhooks.add(shop.context(), { url, events: ['product.created'] });
const send = (url: string, lookup?: LookupFunction) =>
  createHttpClient(STRICT, lookup)(url, MESSAGE, AbortSignal.timeout(10_000));

/** Makes every name resolve to these addresses. */
function resolvingTo(...addresses: string[]): LookupFunction {
  const found: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) =>
    options.all ? callback(null, found) : callback(null, addresses[0] ?? '', found[0]?.family);
}

test('a name server that does not respond ends an attempt without a thread of libuv', async () => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  const resolver = new Resolver({ timeout: 100, tries: 1 });
  resolver.setServers([`127.0.0.1:${silent.address().port}`]);
  const lookUp = jest.fn<LookupFunction>();
  const client = createHttpClient(STRICT, lookUp, resolver);
  await expect(
    client('https://dead.example/', MESSAGE, AbortSignal.timeout(10_000)),
  ).rejects.toMatchObject({ code: 'ETIMEOUT' });
  expect(lookUp).not.toHaveBeenCalled();
  silent.close();
});

describe('O1 a forbidden address of a webhook', () => {
  const UNLESS = 'unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true';
  const PLAIN = [
    'http://hooks.example/',
    'ftp://hooks.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'hooks.example',
    '',
  ];
  /** Other notations of 127.0.0.1. */
  const SPELLINGS = ['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '127.0.0.1.', '①②⑦.0.0.1'];
  const HOSTS = PRIVATE.map((address) => (address.includes(':') ? `[${address}]` : address));

  test.each<[string, string]>([
    ...[...HOSTS, ...SPELLINGS].map((host): [string, string] => [
      `https://${host}/hooks`,
      `must not be a private address, ${UNLESS}`,
    ]),
    ...PLAIN.map((url): [string, string] => [url, `must begin with https://, ${UNLESS}`]),
    [`https://hooks.example/${'x'.repeat(2_000)}`, 'String should have at most 2000 characters'],
  ])('O1 %s is rejected when it is added, with the reason', async (url, reason) => {
    const message = `url: ${reason}`;
    await expect(add(url)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', message });
    expect(await webhooks.listAll(shop.context())).toEqual([]);
  });

  test('O1 a public address is accepted, by name and by number', async () => {
    const urls = [
      'https://hooks.example/in?shop=1',
      'https://93.184.215.14/hooks',
      'https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/',
    ];
    for (const url of urls) await add(url);
    expect((await webhooks.listAll(shop.context())).map(({ url }) => url)).toEqual(urls);
  });
});

describe('O1 a name that resolves to a forbidden address', () => {
  test.each(PRIVATE)('O1 for %s: no connection is opened', async (address) => {
    await expect(
      send(`https://hooks.example:${receiver.port}/`, resolvingTo(address)),
    ).rejects.toThrow('resolves to the private address');
    await expect(
      send(`https://hooks.example:${receiver.port}/`, resolvingTo('93.184.215.14', address)),
    ).rejects.toThrow('resolves to the private address');
  });

  test('O1 localhost is forbidden', async () => {
    await expect(send(`https://localhost:${receiver.port}/`)).rejects.toThrow(
      'resolves to the private address',
    );
  });

  test('O1 a name is checked at each delivery, also if its address was public when it was added', async () => {
    let address = '93.184.215.14';
    const lookup: LookupFunction = (...args) => resolvingTo(address)(...args);
    await add('https://hooks.example/');
    address = '127.0.0.1';
    await expect(send('https://hooks.example/', lookup)).rejects.toThrow(
      'resolves to the private address',
    );
  });

  test('O1 the log and the list of deliveries have the reason, and it is retried as any other', async () => {
    const { webhookId } = await add(`https://localhost:${receiver.port}/`);
    await webhooks.test(shop.context(), webhookId);
    await new DeliveryWorker(createHttpClient(shop.config)).poll(() => shop.workerContext());
    const [delivery] = await deliveries.listDeliveries(shop.context(), {}, 10);
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: 1,
      reason: 'localhost resolves to the private address 127.0.0.1',
    });
    expect(shop.logged.filter((line) => line.includes('"event":"webhook.retry"'))).toHaveLength(1);
    expect(receiver.received).toEqual([]);
  });
});

test('O1 a webhook added while WEBHOOK_ALLOW_PRIVATE_NETWORKS was true is rejected once it is not', async () => {
  const ctx = shop.context();
  await webhooks.add(
    { ...ctx, config: { ...ctx.config, webhookAllowPrivateNetworks: true } },
    { url: receiver.url, events: ['product.created'] },
  );
  await expect(send(receiver.url)).rejects.toThrow(
    'must begin with https://, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true',
  );
  await expect(send(receiver.url.replace('http:', 'https:'))).rejects.toThrow(
    'must not be a private address',
  );
  expect(receiver.received).toEqual([]);
});

test.each([301, 302, 303, 307, 308])(
  'O2 a redirect by %i is not followed: its status is the result',
  async (status) => {
    const elsewhere = await new Receiver().open();
    try {
      receiver.answer = respondWith(status, { Location: elsewhere.url });
      const lax = createHttpClient({ webhookAllowPrivateNetworks: true });
      expect(await lax(receiver.url, MESSAGE, AbortSignal.timeout(10_000))).toBe(status);
      expect([receiver.received.length, elsewhere.received.length]).toEqual([1, 0]);
    } finally {
      await elsewhere.close();
    }
  },
);
