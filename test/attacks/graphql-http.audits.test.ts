import { expect, test } from '../support/jest.ts';
import { serverAudits } from 'graphql-http';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const audits = serverAudits({ url: () => `${shop.url}/graphql`, fetchFn: preflighted });

test('G1 there are 61 audits of GraphQL over HTTP', () => {
  expect(new Set(audits.map(({ id }) => id)).size).toBe(61);
});

test.each(audits.map(({ id, name, fn }) => ({ id, name, fn })))('G1 $id $name', async ({ fn }) => {
  const result = await fn();
  expect(result.status === 'ok' ? 'ok' : result.reason).toBe('ok');
});

test('G1 the audits notice what they are there for: without the preflight header those by GET fail', async () => {
  const asked = serverAudits({ url: () => `${shop.url}/graphql` }).find(({ id }) => id === '5A70');
  expect(await asked?.fn()).toMatchObject({ id: '5A70', status: 'notice' });
});

/** A client that says by a header that it is no form on another site. */
function preflighted(url: string, request: RequestInit = {}): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.set('apollo-require-preflight', 'true');
  return fetch(url, { ...request, headers });
}
