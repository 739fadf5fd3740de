import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from '../../support/jest.ts';
import { z } from 'zod';
import { route } from '../../../src/api/route.ts';
import { CallCounter } from '../../../src/features/rest-usage/call-counter.ts';
import { Exchange } from '../../../src/http/exchange.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { endpointHandler } from '../../../src/rest/endpoint.ts';
import { createFastPaths } from '../../../src/graphql/compiled/fast-paths.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { useShop } from '../../support/shop.ts';
import { until } from '../../support/until.ts';

const shop = useShop();
let server: Server | undefined;

afterAll(() => void server?.close());

test('a list that fails midway is recorded as broken, with the bytes sent', async () => {
  const breaking = route({
    method: 'GET',
    path: '/breaks',
    summary: 'Break',
    description: 'Breaks.',
    access: 'public',
    success: { status: 200, body: z.unknown(), stream: true },
    graphqlEquivalent: { operation: '{ __typename }', correspondences: [] },
    async *handle() {
      yield '[1,';
      await Promise.resolve();
      throw new Error('read failed');
    },
  });
  const { config, database, calls } = shop;
  const records: RequestRecord[] = [];
  const observe = (record: RequestRecord) => void records.push(record);
  const log = openLog({ logLevel: 'silent' });
  const services = {
    config,
    log,
    calls,
    observe,
    now: () => new Date(),
    database: () => database,
    isDraining: () => false,
  };
  const answer = endpointHandler(
    { ...services, calls: new CallCounter() },
    createFastPaths(config).share,
    breaking,
  );
  server = createServer(
    (req, res) => void answer(new Exchange(req, res, {}, {}, () => false, observe)),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;

  const plain = fetch(`http://127.0.0.1:${port}/breaks`, {
    headers: { 'Accept-Encoding': 'identity' },
  });
  await expect(plain.then((res) => res.text())).rejects.toThrow(/terminated|fetch failed/);
  await until(() => records.length > 0);
  expect(records).toEqual([expect.objectContaining({ status: 200, bytes: 3, end: 'broken' })]);
});
