import { expect, test } from '../support/jest.ts';
import { serverAudits } from 'graphql-http';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const audits = serverAudits({ url: () => `${shop.url}/graphql` });

test('G1 there are 61 audits of GraphQL over HTTP', () => {
  expect(new Set(audits.map(({ id }) => id)).size).toBe(61);
});

test.each(audits.map(({ id, name, fn }) => ({ id, name, fn })))('G1 $id $name', async ({ fn }) => {
  const result = await fn();
  expect(result.status === 'ok' ? 'ok' : result.reason).toBe('ok');
});

test('G1 most audits fail at a REST path', async () => {
  const atRest = serverAudits({ url: () => `${shop.url}/api/v2/shop/products` });
  const results = await Promise.all(atRest.map(({ fn }) => fn()));
  expect(results.filter(({ status }) => status !== 'ok').length).toBeGreaterThan(30);
});
