import { describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

describe('lists inside lists', () => {
  test('D22 loaders are not shared between requests: each concurrent caller gets only its own data, by both APIs', async () => {
    const users: User[] = [];
    for (let made = 0; made < 8; made++) {
      const user = await shop.makeUser({ scopes: made % 2 === 0 ? [] : ['users:read'] });
      await shop.makeItem(user, `of ${user.username}`);
      await shop.makeEntry(user, { title: `draft of ${user.username}`, published: false });
      users.push(user);
    }
    const query =
      '{ me { username email items { nodes { itemId } } } blog { nodes { title creator { username } } } users { nodes { email items(first: 1) { nodes { itemId } } } } }';
    const callers = Array.from({ length: 200 }, (_, at) => users[at % users.length]).filter(
      (user) => user !== undefined,
    );
    const answers = await Promise.all(
      callers.map(async (as) => ({
        as,
        answer: await shop.graphql(query, {}, { as }),
        items: await shop.rest('GET', '/users/me/items/', { as }),
      })),
    );
    for (const { as, answer, items } of answers) {
      const { username, email } = as;
      expect(items.body).toEqual([{ item_id: `of ${username}`, owner: username }]);
      expect(answer.body.data).toEqual({
        me: { username, email, items: { nodes: [{ itemId: `of ${username}` }] } },
        blog: { nodes: [{ title: `draft of ${username}`, creator: { username } }] },
        users: {
          nodes: users.map((user) =>
            user === as || as.scopes.includes('users:read')
              ? { email: user.email, items: { nodes: [{ itemId: `of ${user.username}` }] } }
              : { email: null, items: { nodes: [] } },
          ),
        },
      });
    }
  });
});
