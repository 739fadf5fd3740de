import { afterEach, describe, expect, test } from '../support/jest.ts';
import { subscribe } from '../../src/features/change-log/subscribe.ts';
import { cursorOf, type Change } from '../../src/features/change-log/change-log.ts';
import type { Context } from '../../src/request/context.ts';
import { DomainError } from '../../src/core/errors.ts';
import { ActiveSubscription } from '../../src/graphql/subscriptions/subscription.ts';
import { settled } from '../support/settled.ts';
import { Shop, useShop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const AT_ONCE = 1_000;

const shop = useShop();
const open: ActiveSubscription[] = [];

afterEach(() => {
  for (const subscription of open.splice(0)) subscription.end();
});

/** Opens a subscription, as GraphQL does. */
async function subscriber(after?: string, at: Shop = shop) {
  await settled(shop);
  const subscription = new ActiveSubscription({ headers: {} } as never);
  open.push(subscription);
  const ctx: Context = Object.assign(at.context(), { request: subscription });
  return { listening: subscription, changes: await subscribe(ctx, after) };
}

async function take(changes: AsyncGenerator<Change, void>, count: number): Promise<Change[]> {
  const taken: Change[] = [];
  while (taken.length < count) {
    const { value, done } = await changes.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

const subjects = (changes: readonly Change[]) => changes.map(({ subject }) => Number(subject));
const pks = (made: readonly { pk: number }[]) => made.map(({ pk }) => pk);

test.each(['while it subscribes', 'before it has requested anything'])(
  'nothing is read for a client that disconnects %s',
  async (when) => {
    const subscription = new ActiveSubscription({ headers: {} } as never);
    const subscribing = subscribe(Object.assign(shop.context(), { request: subscription }));
    if (when === 'while it subscribes') subscription.end();
    await subscribing;
    subscription.end();
    const { answer, statements } = await recordStatements(() => subscriber(), { withPolls: true });
    expect(statements.filter((text) => text.includes('from change'))).toEqual([]);
    const made = await shop.makeProducts(1);
    expect(subjects(await take(answer.changes, 1))).toEqual(pks(made));
  },
);

test('changes of another instance arrive as well', async () => {
  const { changes } = await subscriber();
  const other = await new Shop().start();
  try {
    const made = await other.makeProducts(2);
    expect(subjects(await take(changes, 2))).toEqual(pks(made));
  } finally {
    await other.stop();
  }
});

describe('after a cursor', () => {
  test('all later changes arrive once, the stored ones before the new ones', async () => {
    const made = await shop.makeProducts(1);
    const before = await subscriber();
    made.push(...(await shop.makeProducts(2)));
    const [first] = await take(before.changes, 1);
    await shop.sql(
      `insert into change (kind, subject) select 'product.changed', 0 from generate_series(1, ${AT_ONCE})`,
    );
    const { changes } = await subscriber(first && cursorOf(first));
    made.push(...(await shop.makeProducts(1)));
    const all = subjects(await take(changes, AT_ONCE + 2));
    expect([all[0], all.at(-1)]).toEqual(pks(made.slice(2)));
    expect(all.slice(1, -1)).toEqual(Array(AT_ONCE).fill(0));
  });

  describe('while stored changes are read', () => {
    const rejection = new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
    /** A subscriber that has missed a hundred changes and received the first of them. */
    const behind = async () => {
      const { changes, listening: subscription } = await subscriber();
      await shop.makeProducts(1);
      const [first] = await take(changes, 1);
      subscription.end();
      await shop.sql(
        `insert into change (kind, subject) select 'product.changed', n from generate_series(1, 100) n`,
      );
      const late = await subscriber(first && cursorOf(first));
      const { answer, statements } = await recordStatements(() => take(late.changes, 1), {
        withPolls: true,
      });
      expect(subjects(answer)).toEqual([1]);
      return { ...late, statements };
    };

    test('few changes are buffered for a slow client', async () => {
      const { statements } = await behind();
      // The shared event reader reads 500 at a time, whenever it is due.
      expect(
        statements.filter((text) => text.includes('as cutoff') && !/limit 500\b/.test(text)),
      ).toEqual([expect.stringMatching(/limit 20\b/)]);
    });

    test('a rejected subscriber gets no more changes, and none are read for it', async () => {
      const { changes, listening: subscription } = await behind();
      subscription.end(rejection);
      const { answer, statements } = await recordStatements(() => take(changes, 1), {
        withPolls: true,
      });
      expect([answer, statements]).toEqual([[], []]);
    });
  });
});

test('if the transaction ids of the database go back, every subscriber gets CURSOR_EXPIRED', async () => {
  const { changes, listening: subscription } = await subscriber();
  const waiting = changes.next();
  // As after a restored backup: the changes already read are in the future.
  const { statements } = shop.database;
  const read = statements.read.bind(statements);
  statements.read = async (...args) => {
    const rows = await read(...args);
    return args[0].text.includes('as cutoff') ? rows.map((row) => ({ ...row, cutoff: '3' })) : rows;
  };
  try {
    await expect(waiting).rejects.toMatchObject({ code: 'CURSOR_EXPIRED' });
    expect(subscription.error).toMatchObject({ code: 'CURSOR_EXPIRED' });
  } finally {
    statements.read = read;
  }
});
