import { describe, expect, test } from '../support/jest.ts';
import { recordStatements } from '../support/statements.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();
const small = useShop({ MAX_ITEMS_PER_USER: '3' });

const ADD = 'mutation ($text: String!) { made: addItem(itemId: $text) { id } }';
const WRITE =
  'mutation ($text: String!) { made: createBlogEntry(input: { title: $text, body: "x" }) { id } }';

describe('P5 blog entries and items of one user', () => {
  test.each([
    ['items', ADD, true],
    ['blog entries', WRITE, false],
  ])(
    'P5 are limited: of ten concurrent %s three are stored, and another after a removal',
    async (noun, document, isRemovable) => {
      const [user, other] = [
        await small.makeUser({ scopes: ['blog:write'] }),
        await small.makeUser({ scopes: ['blog:write'] }),
      ];
      const made = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          small.graphql(document, { text: String(at) }, { as: user }),
        ),
      );
      const rejected = made.flatMap(
        ({ body }) => (body.errors ?? []) as { message: string; extensions: object }[],
      );
      expect(rejected).toHaveLength(7);
      for (const { message, extensions } of rejected) {
        expect([message, extensions]).toEqual([
          `You have reached the limit of 3 ${noun}`,
          { code: 'CONFLICT' },
        ]);
      }
      expect(
        (await small.graphql(document, { text: 'another' }, { as: other })).body.errors,
      ).toBeUndefined();
      if (!isRemovable) return;
      const stored = made.findIndex(({ body }) => body.errors === undefined);
      await small.graphql(`mutation { removeItem(itemId: "${stored}") { id } }`, {}, { as: user });
      expect(
        (await small.graphql(document, { text: 'next' }, { as: user })).body.errors,
      ).toBeUndefined();
    },
  );

  test.each([0, 101])(
    'P5 GET /blog and /users/me/items/ are complete and in order: %i',
    async (count) => {
      const user = await shop.makeUser({ username: 'ada', email: 'ada@shop.example' });
      await shop.sql(`
      insert into blog_entry (creator_pk, title, body, published, created_at, updated_at)
      select ${user.pk}, 'Entry ' || n, '"' || n, n % 2 = 0, now() - n * interval '1 minute', now() from generate_series(1, ${count}) n`);
      await shop.sql(
        `insert into item (owner_pk, item_id, created_at) select ${user.pk}, 'i' || n, now() from generate_series(1, ${count}) n`,
      );
      const numbers = Array.from({ length: count }, (_, index) => index + 1);
      expect((await shop.rest('GET', '/blog', { as: user })).body).toEqual(
        numbers.map((n) => ({
          title: `Entry ${n}`,
          body: `"${n}`,
          published: n % 2 === 0,
          creator: { username: 'ada', email: 'ada@shop.example' },
        })),
      );
      expect((await shop.rest('GET', '/users/me/items/', { as: user })).body).toEqual(
        numbers.map((n) => ({ item_id: `i${n}`, owner: 'ada' })),
      );
    },
  );

  test('P5 GET /blog is streamed: no statement reads more than a batch', async () => {
    const user = await shop.makeUser();
    await shop.sql(`
      insert into blog_entry (creator_pk, title, body, published, created_at, updated_at)
      select ${user.pk}, 'Entry ' || n, 'x', true, now(), now() from generate_series(1, 100) n`);
    const { statements } = await recordStatements(() => shop.rest('GET', '/blog', { as: user }));
    expect(statements.filter((statement) => /from "?blog_entry/.test(statement)).length).toBe(10);
  });
});
