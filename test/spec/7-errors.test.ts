import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

test.each([
  'application/problem+json, application/json',
  'application/json, application/problem+json',
  'text/html, application/problem+json;q=0.9',
])('7 Accept: %s gets application/problem+json', async (accept) => {
  const { headers } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
  expect(headers.get('www-authenticate')).toBe('Bearer');
});

test.each(['*/*', 'application/*', 'application/json', 'text/html'])(
  '7 Accept: %s gets application/json',
  async (accept) => {
    const { headers, body } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
    expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
    expect(body).toEqual({ detail: 'Not authenticated' });
  },
);
