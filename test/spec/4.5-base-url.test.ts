import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const based = useShop({ BASE_PATH: '/shop' });

test.each(['/users/me/', '/session/login', '/graphql', '/livez', '/shopping/livez'])(
  '4.5 %s, without {base_url} or with a path that only begins like it, is 404',
  async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const answer = await fetch(`http://127.0.0.1:${based.port}${path}`, { method });
      expect([method, answer.status]).toEqual([method, 404]);
    }
  },
);
