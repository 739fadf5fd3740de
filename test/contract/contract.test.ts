import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { Deployment, runCheck, sections } from '../../packages/contract/index.ts';
import * as legacy from '../../src/features/rest-usage/rest-usage.service.ts';
import { fullDeployment, seedShop } from '../support/contract.ts';
import { Shop } from '../support/shop.ts';

/** Checks that need configuration. */
const NEED_CONFIGURATION: readonly string[] = ['5.2:iss', '9:deprecation'];
const promises = sections.flatMap((section) => section.promises);

describe.each<{ name: string; env: Record<string, string>; skipped: readonly string[] }>([
  { name: 'with default settings', env: {}, skipped: NEED_CONFIGURATION },
  {
    name: 'under BASE_PATH and SESSION_PREFIX, with issuer and audience, version 1 deprecated',
    env: {
      BASE_PATH: '/shop',
      SESSION_PREFIX: '/accounts/session',
      JWT_ISSUER: 'https://shop.example',
      JWT_AUDIENCE: 'shop',
      V1_DEPRECATION: '2027-01-31',
    },
    skipped: [],
  },
])('the shop $name', ({ env, skipped }) => {
  const shop = new Shop(env);
  let at: Deployment;

  beforeAll(async () => {
    await shop.start();
    await seedShop(shop);
    at = new Deployment(fullDeployment(shop));
  });
  afterAll(() => shop.stop());

  test.each(promises)('$section $endpoint: $says ($id)', async (promised) => {
    const verdict = await runCheck(promised, at);
    expect(verdict).toMatchObject({
      outcome: skipped.includes(promised.id) ? 'skipped' : 'passed',
    });
  });

  test('each request names the kit, and the report of REST usage excludes all of them', async () => {
    await legacy.store(shop.context(), shop.calls);
    expect(
      await shop.sql(
        `select count(*)::int > 20 as many from rest_call where client ~ '^shopfront-contract/\\d'`,
      ),
    ).toEqual([{ many: true }]);
    expect(await legacy.report(shop.context(), { limit: 10 })).toEqual([]);
  });

  test('every login is ended at the end', async () => {
    expect(await at.logOutAll()).toBe(0);
    expect(await shop.sql('select sid from session where ended_at is null')).toEqual([]);
    expect(at.opened).toBeGreaterThan(20);
  });
});

test('ids of promises are unique', () => {
  const ids = promises.map(({ id }) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('README.md has the number of promises of the interface and of decisions', async () => {
  const count = (level: string) => promises.filter((promised) => promised.level === level).length;
  expect((await readFile('README.md', 'utf8')).replaceAll(/\s+/g, ' ')).toContain(
    `${count('interface')} promises, and ${count('decision')} decisions where the interface is open`,
  );
});
