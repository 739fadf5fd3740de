import { expect, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

test('a caller whose long responses under idempotency keys take more than 32 MB within a day is RATE_LIMITED, unlike others and short responses', async () => {
  const [as, other] = [
    await shop.makeUser({ scopes: ['blog:write'] }),
    await shop.makeUser({ scopes: ['blog:write'] }),
  ];
  const { id } = await shop.makeEntry(as, { body: '\u20ac'.repeat(28_000) });
  const { id: another } = await shop.makeEntry(other, { body: '\u20ac'.repeat(28_000) });
  const long =
    'mutation ($id: ID!) { updateBlogEntry(id: $id, input: {}) { a: body b: body c: body } }';
  let count = 0;
  let rejected: Answer | undefined;
  while (count < 200 && !rejected) {
    const answer = await shop.graphql(
      long,
      { id },
      { as, headers: { 'Idempotency-Key': `k${count}` } },
    );
    if (answer.body.errors) rejected = answer;
    else count++;
  }
  expect(count).toBe(Math.floor(32_000_000 / 252_000));
  expect(rejected?.body.errors[0].extensions).toMatchObject({
    code: 'RATE_LIMITED',
    retryAfter: expect.any(Number),
  });
  const short = await shop.graphql(
    'mutation { addItem(itemId: "lamp") { itemId } }',
    {},
    { as, headers: { 'Idempotency-Key': 'short' } },
  );
  const others = await shop.graphql(
    long,
    { id: another },
    { as: other, headers: { 'Idempotency-Key': 'k' } },
  );
  expect([short.body.errors, others.body.errors]).toEqual([undefined, undefined]);
});
