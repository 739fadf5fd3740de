import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from '../../support/jest.ts';
import { z } from 'zod';
import { route } from '../../../src/api/route.ts';
import { CallCounter } from '../../../src/features/rest-usage/call-counter.ts';
import { Exchange } from '../../../src/http/exchange.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { rowAnswerer } from '../../../src/rest/endpoint.ts';
import { openShortcuts } from '../../../src/graphql/compiled/shortcuts.ts';
import type { Seen } from '../../../src/telemetry/request-record.ts';
import { useShop } from '../../support/shop.ts';
import { until } from '../../support/until.ts';

const shop = useShop();
let server: Server | undefined;

afterAll(() => void server?.close());

test('a list that cannot be read to its end is told of as broken, with what was sent of it', async () => {
  const breaking = route({
    method: 'GET',
    path: '/breaks',
    summary: 'Break',
    description: 'Breaks.',
    access: 'public',
    success: { status: 200, body: z.unknown(), stream: true },
    twin: { operation: '{ __typename }' },
    async *handle() {
      yield '[1,';
      await Promise.resolve();
      throw new Error('there is no more');
    },
  });
  const { config, database, calls } = shop;
  const told: Seen[] = [];
  const observe = (seen: Seen) => void told.push(seen);
  const log = openLog({ logLevel: 'silent' });
  const services = { config, log, calls, observe, now: () => new Date(), database: () => database, isDraining: () => false };
  const answer = rowAnswerer({ ...services, calls: new CallCounter() }, openShortcuts(config), breaking);
  server = createServer((req, res) => void answer(new Exchange(req, res, {}, {}, () => false, observe)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;

  const plain = fetch(`http://127.0.0.1:${port}/breaks`, { headers: { 'Accept-Encoding': 'identity' } });
  await expect(plain.then((res) => res.text())).rejects.toThrow(/terminated|fetch failed/);
  await until(() => told.length > 0);
  expect(told).toEqual([expect.objectContaining({ status: 200, bytes: 3, end: 'broken' })]);
});
