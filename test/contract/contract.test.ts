import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Deployment } from '../../contract/deployment.ts';
import { sections } from '../../contract/promises/index.ts';
import { look } from '../../contract/run.ts';
import * as legacy from '../../src/features/rest-usage/rest-usage.service.ts';
import { everythingAbout, stock } from '../support/contract.ts';
import { Shop } from '../support/shop.ts';

/** What has to be configured before it can be seen. */
const CONFIGURED: readonly string[] = ['5.2:iss', '9:deprecation'];
const promises = sections.flatMap((section) => section.promises);

describe.each<{ name: string; env: Record<string, string>; notTried: readonly string[] }>([
  { name: 'as it comes', env: {}, notTried: CONFIGURED },
  {
    name: 'under BASE_PATH, with issuer and audience, the first version superseded',
    env: { BASE_PATH: '/shop', JWT_ISSUER: 'https://shop.example', JWT_AUDIENCE: 'shop', V1_DEPRECATED_ON: '2027-01-31' },
    notTried: [],
  },
  { name: 'with SESSION_PREFIX', env: { SESSION_PREFIX: '/accounts/session' }, notTried: CONFIGURED },
])('the shop $name', ({ env, notTried }) => {
  const shop = new Shop(env);
  let at: Deployment;

  beforeAll(async () => {
    await shop.start();
    await stock(shop);
    at = new Deployment(everythingAbout(shop));
  });
  afterAll(() => shop.stop());

  test.each(promises)('$section $row: $says ($id)', async (promised) => {
    const seen = await look(promised, at);
    expect(seen).toMatchObject({ outcome: notTried.includes(promised.id) ? 'not tried' : 'holds' });
  });

  test('each of its requests names the kit, and the report of REST usage leaves all of them out', async () => {
    await legacy.store(shop.context(), shop.calls);
    expect(await shop.sql(`select count(*)::int > 20 as many from legacy_call where client ~ '^shopfront-contract/\\d'`)).toEqual([
      { many: true },
    ]);
    expect(await legacy.report(shop.context(), { limit: 10 })).toEqual({ lines: [], total: { lines: 0, calls: 0 } });
  });

  test('every login is ended afterwards', async () => {
    expect(await at.leave()).toBe(0);
    expect(await shop.sql('select sid from session where ended_at is null')).toEqual([]);
    expect(at.opened).toBeGreaterThan(20);
  });
});

test('no two promises have one id', () => {
  const ids = promises.map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});
