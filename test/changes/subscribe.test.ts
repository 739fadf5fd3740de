import { afterEach, describe, expect, test } from '../support/jest.ts';
import { subscribe } from '../../src/features/change-log/subscribe.ts';
import { cursorOf, type Change } from '../../src/features/change-log/change-log.ts';
import type { Context } from '../../src/request/context.ts';
import { DomainError } from '../../src/core/errors.ts';
import { ActiveSubscription } from '../../src/graphql/subscriptions/active-subscription.ts';
import { settled } from '../support/settled.ts';
import { Shop, useShop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

/** More changes than a subscriber may lag behind. */
const TOO_MANY = 6_000;
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
const touch = (from: number, to: number) =>
  shop.sql(`update product set price = price + 1 where pk between ${from} and ${to}`);

test('a subscriber gets all later changes, in order', async () => {
  await shop.makeProduct();
  const { changes } = await subscriber();
  const made = await shop.makeProducts(3);
  expect(subjects(await take(changes, 3))).toEqual(pks(made));
});

test('each subscriber gets all changes, at its own pace', async () => {
  const [fast, slow] = [await subscriber(), await subscriber()];
  const made = await shop.makeProducts(3);
  expect(subjects(await take(fast.changes, 3))).toEqual(pks(made));
  const more = await shop.makeProducts(1);
  expect(subjects(await take(slow.changes, 4))).toEqual(pks([...made, ...more]));
});

test('a later subscriber gets no earlier changes', async () => {
  const early = await subscriber();
  await shop.makeProducts(3);
  const late = await subscriber();
  const made = await shop.makeProducts(1);
  expect(subjects(await take(late.changes, 1))).toEqual(pks(made));
  expect(await take(early.changes, 4)).toHaveLength(4);
});

test('a subscriber after a time without any gets no changes of that time', async () => {
  const first = await subscriber();
  first.listening.end();
  expect(await take(first.changes, 1)).toEqual([]);
  await shop.makeProducts(2);
  const { changes } = await subscriber();
  const made = await shop.makeProducts(1);
  expect(subjects(await take(changes, 1))).toEqual(pks(made));
});

test.each(['while it subscribes', 'before it has requested anything'])(
  'nothing is read for a client that disconnects %s',
  async (when) => {
    const subscription = new ActiveSubscription({ headers: {} } as never);
    const subscribing = subscribe(Object.assign(shop.context(), { request: subscription }));
    if (when === 'while it subscribes') subscription.end();
    await subscribing;
    subscription.end();
    const { answer, statements } = await recordStatements(() => subscriber());
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
      const { answer, statements } = await recordStatements(() => take(late.changes, 1));
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
      const { answer, statements } = await recordStatements(() => take(changes, 1));
      expect([answer, statements]).toEqual([[], []]);
    });

    test('a slow consumer gets SLOW_CONSUMER at once', async () => {
      const slow = await behind();
      const fast = await subscriber();
      for (let written = 0; written < TOO_MANY; written += AT_ONCE) {
        await shop.sql(
          `insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${AT_ONCE}) n`,
        );
        await take(fast.changes, AT_ONCE);
      }
      await expect(slow.changes.next()).rejects.toMatchObject({ code: 'SLOW_CONSUMER' });
    });
  });

  test('that is no longer in the log is CURSOR_EXPIRED', async () => {
    const { changes } = await subscriber();
    await shop.makeProduct();
    const [first] = await take(changes, 1);
    await shop.sql('delete from change');
    await expect(subscriber(first && cursorOf(first))).rejects.toMatchObject({
      code: 'CURSOR_EXPIRED',
    });
  });

  test('that is invalid is BAD_USER_INPUT', async () => {
    await expect(subscriber('nonsense')).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

describe('a slow consumer', () => {
  test('is ended with the reason, at once; the others continue', async () => {
    await shop.makeProducts(2);
    const [fast, slow] = [await subscriber(), await subscriber()];
    for (let written = 0; written < TOO_MANY; written += AT_ONCE) {
      await shop.sql(
        `insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${AT_ONCE}) n`,
      );
      expect(await take(fast.changes, AT_ONCE)).toHaveLength(AT_ONCE);
    }
    expect(slow.listening.error).toMatchObject({ code: 'SLOW_CONSUMER' });
    await expect(slow.changes.next()).rejects.toMatchObject({ code: 'SLOW_CONSUMER' });
    expect(fast.listening.error).toBeUndefined();
    await touch(1, 2);
    expect(await take(fast.changes, 2)).toHaveLength(2);
  });

  test('while no subscriber reads, none is too slow', async () => {
    const { listening: subscription, changes } = await subscriber();
    await shop.sql(
      `insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${TOO_MANY}) n`,
    );
    expect(subjects(await take(changes, TOO_MANY)).at(-1)).toBe(TOO_MANY);
    expect(subscription.error).toBeUndefined();
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
    return args[0].text.includes('as cutoff') ? rows.map(([, ...cells]) => ['3', ...cells]) : rows;
  };
  try {
    await expect(waiting).rejects.toMatchObject({ code: 'CURSOR_EXPIRED' });
    expect(subscription.error).toMatchObject({ code: 'CURSOR_EXPIRED' });
  } finally {
    statements.read = read;
  }
});
