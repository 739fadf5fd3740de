import { describe, expect, test } from '../support/jest.ts';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, isIP, type AddressInfo, type LookupFunction } from 'node:net';
import { events as tellers } from '../../src/features.ts';
import { Courier } from '../../src/features/webhooks/delivery-worker.ts';
import * as deliveries from '../../src/features/webhooks/delivery.service.ts';
import { openSender, TargetRefused } from '../../src/features/webhooks/http-client.ts';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { answering, Receiver, useReceiver } from '../support/receiver.ts';
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

const STRICT = { webhookPrivateTargets: false };
const MESSAGE = { headers: { 'Content-Type': 'application/json' }, body: '{}' };
const add = (url: string) => webhooks.add(shop.context(), { url, events: ['product.created'] });
const send = (url: string, lookup?: LookupFunction) => openSender(STRICT, lookup)(url, MESSAGE, AbortSignal.timeout(10_000));

/** Has every name stand for these addresses. */
function standingFor(...addresses: string[]): LookupFunction {
  const found: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => (options.all ? callback(null, found) : callback(null, addresses[0] ?? '', found[0]?.family));
}

describe('O1 an address that a webhook may not have', () => {
  test.each(PRIVATE.map((address) => (address.includes(':') ? `https://[${address}]/hooks` : `https://${address}/hooks`)))(
    'O1 %s is refused when it is added',
    async (url) => {
      await expect(add(url)).rejects.toMatchObject({
        code: 'BAD_USER_INPUT',
        message: 'url: must not be a private address, unless WEBHOOK_PRIVATE_TARGETS=true',
      });
      expect(await webhooks.listAll(shop.context())).toEqual([]);
    },
  );

  test.each([
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://①②⑦.0.0.1/',
  ])('O1 so is %s, which is written otherwise and stands for the same', async (url) => {
    await expect(add(url)).rejects.toMatchObject({ message: 'url: must not be a private address, unless WEBHOOK_PRIVATE_TARGETS=true' });
  });

  test.each([
    ['http://hooks.example/', 'must begin with https://, unless WEBHOOK_PRIVATE_TARGETS=true'],
    ['ftp://hooks.example/', 'must begin with https://'],
    ['file:///etc/passwd', 'must begin with https://'],
    ['javascript:alert(1)', 'must begin with https://'],
    ['https://user:password@hooks.example/', 'must have no credentials in it: messages are signed'],
    ['https://user@hooks.example/', 'must have no credentials in it: messages are signed'],
    ['https://hooks.example/#part', 'must have no fragment, which is never sent'],
    ['https://hooks.example/#', 'must have no fragment, which is never sent'],
    ['hooks.example', 'must be a URL of at most 2000 characters'],
    ['', 'must be a URL of at most 2000 characters'],
    [`https://hooks.example/${'x'.repeat(2_000)}`, 'must be a URL of at most 2000 characters'],
  ])('O1 %s is refused, and said why', async (url, message) => {
    await expect(add(url)).rejects.toMatchObject({ code: 'BAD_USER_INPUT', message: `url: ${message}` });
  });

  test('O1 a public one is taken, by name and by number', async () => {
    for (const url of [
      'https://hooks.example/in?shop=1',
      'https://93.184.215.14/hooks',
      'https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/',
    ])
      await add(url);
    expect((await webhooks.listAll(shop.context())).map(({ url }) => url)).toEqual([
      'https://hooks.example/in?shop=1',
      'https://93.184.215.14/hooks',
      'https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/',
    ]);
  });
});

describe('O1 a name that stands for an address that a webhook may not have', () => {
  test.each(PRIVATE)('O1 for %s: nothing is connected to', async (address) => {
    await expect(send(`https://hooks.example:${receiver.port}/`, standingFor(address))).rejects.toThrow(TargetRefused);
    await expect(send(`https://hooks.example:${receiver.port}/`, standingFor('93.184.215.14', address))).rejects.toThrow(TargetRefused);
  });

  test('O1 localhost is none that may be', async () => {
    await expect(send(`https://localhost:${receiver.port}/`)).rejects.toThrow(TargetRefused);
  });

  test('O1 what stands for a public address when it is added, and for a private one later, is looked at each time', async () => {
    let address = '93.184.215.14';
    const lookup: LookupFunction = (...args) => standingFor(address)(...args);
    await add('https://hooks.example/');
    address = '127.0.0.1';
    await expect(send('https://hooks.example/', lookup)).rejects.toThrow(TargetRefused);
  });

  test('O1 the log and the list of deliveries say so, and it is tried again as any other', async () => {
    const { wid } = await add(`https://localhost:${receiver.port}/`);
    await webhooks.test(shop.context(), wid);
    await new Courier(tellers, openSender(shop.config)).deliver(() => shop.workerContext());
    const [delivery] = await deliveries.listSome(shop.context(), {}, 10);
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: 1,
      reason: expect.stringContaining('is not allowed. It is no public address.'),
    });
    expect(shop.logged.filter((line) => line.includes('"event":"webhook.later"'))).toHaveLength(1);
    expect(receiver.received).toEqual([]);
  });
});

test('O1 what was added while WEBHOOK_PRIVATE_TARGETS was true is refused once it is not', async () => {
  const ctx = shop.context();
  await webhooks.add(
    { ...ctx, config: { ...ctx.config, webhookPrivateTargets: true } },
    { url: receiver.url, events: ['product.created'] },
  );
  await expect(send(receiver.url)).rejects.toThrow('must begin with https://, unless WEBHOOK_PRIVATE_TARGETS=true');
  await expect(send(receiver.url.replace('http:', 'https:'))).rejects.toThrow('must not be a private address');
  expect(receiver.received).toEqual([]);
});

test.each([301, 302, 303, 307, 308])('O2 a redirection by %i is followed nowhere: its status is the answer', async (status) => {
  const elsewhere = await new Receiver().open();
  try {
    receiver.answer = answering(status, { Location: elsewhere.url });
    const lax = openSender({ webhookPrivateTargets: true });
    expect(await lax(receiver.url, MESSAGE, AbortSignal.timeout(10_000))).toMatchObject({ status });
    expect([receiver.received.length, elsewhere.received.length]).toEqual([1, 0]);
  } finally {
    await elsewhere.close();
  }
});

test('a target that answers by changing the protocol has failed, and nobody waits for it', async () => {
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .once('data', () => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
      });
  });
  try {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const lax = openSender({ webhookPrivateTargets: true });
    await expect(lax(`http://127.0.0.1:${port}/`, MESSAGE, AbortSignal.timeout(10_000))).resolves.toMatchObject({ status: 101 });
  } finally {
    server.close();
  }
});
