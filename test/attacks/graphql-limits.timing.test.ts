import { expect, test } from '../support/jest.ts';
import { HOSTILE, small } from '../support/hostile-documents.ts';
import { useShop } from '../support/shop.ts';
import { compare, expectAtMost } from '../support/timing.ts';

const shop = useShop({ LOG_LEVEL: 'silent' });

const ROUNDS = 18;
/** Maximum ratio of the time of a hostile query to that of a small new one. */
const AT_MOST = 20;

test.each(HOSTILE)(
  `%s: rejected or answered within ${AT_MOST} times the time of a small query`,
  async (_what, hostile) => {
    const timeOf = async (query: string) => {
      const start = performance.now();
      const { status } = await shop.graphql(query);
      const time = performance.now() - start;
      expect([200, 400]).toContain(status);
      return time;
    };
    const comparison = await compare(
      () => timeOf(small()),
      () => timeOf(hostile()),
      ROUNDS,
    );
    expectAtMost(comparison, AT_MOST);
  },
);
