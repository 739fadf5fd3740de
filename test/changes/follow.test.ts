import { afterEach, describe, expect, test } from '../support/jest.ts';
import { follow } from '../../src/features/change-log/subscribe.ts';
import { cursorOf, type Change } from '../../src/features/change-log/change-log.ts';
import type { Context } from '../../src/request/context.ts';
import { DomainError } from '../../src/core/errors.ts';
import { Listening } from '../../src/graphql/subscriptions/active-subscription.ts';
import { settled } from '../support/settled.ts';
import { Shop, useShop } from '../support/shop.ts';
import { counted } from '../support/statements.ts';

/** More than anyone may be behind. */
const TOO_MANY = 6_000;
const AT_ONCE = 1_000;

const shop = useShop();
const open: Listening[] = [];

afterEach(() => {
  for (const listening of open.splice(0)) listening.end();
});

/** One who follows, as a subscription does. */
async function follower(after?: string, at: Shop = shop) {
  await settled(shop);
  const listening = new Listening({ headers: {} } as never);
  open.push(listening);
  const ctx: Context = Object.assign(at.context(), { request: listening });
  return { listening, changes: await follow(ctx, after) };
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
const touch = (from: number, to: number) => shop.sql(`update product set price = price + 1 where pk between ${from} and ${to}`);

test('who follows gets what is written from then on, in order', async () => {
  await shop.makeProduct();
  const { changes } = await follower();
  const made = await shop.makeProducts(3);
  expect(subjects(await take(changes, 3))).toEqual(pks(made));
});

test('all who follow get all of it, each at its own pace', async () => {
  const [quick, slow] = [await follower(), await follower()];
  const made = await shop.makeProducts(3);
  expect(subjects(await take(quick.changes, 3))).toEqual(pks(made));
  const more = await shop.makeProducts(1);
  expect(subjects(await take(slow.changes, 4))).toEqual(pks([...made, ...more]));
});

test('who comes later gets nothing from before', async () => {
  const early = await follower();
  await shop.makeProducts(3);
  const late = await follower();
  const made = await shop.makeProducts(1);
  expect(subjects(await take(late.changes, 1))).toEqual(pks(made));
  expect(await take(early.changes, 4)).toHaveLength(4);
});

test('after everyone has gone, who comes gets nothing from between', async () => {
  const first = await follower();
  first.listening.end();
  expect(await take(first.changes, 1)).toEqual([]);
  await shop.makeProducts(2);
  const { changes } = await follower();
  const made = await shop.makeProducts(1);
  expect(subjects(await take(changes, 1))).toEqual(pks(made));
});

test.each(['while it joins', 'before it has asked for anything'])('nothing is read for a client that leaves %s', async (when) => {
  const listening = new Listening({ headers: {} } as never);
  const joining = follow(Object.assign(shop.context(), { request: listening }));
  if (when === 'while it joins') listening.end();
  await joining;
  listening.end();
  const { answer, statements } = await counted(() => follower());
  expect(statements.filter((text) => text.includes('from change'))).toEqual([]);
  const made = await shop.makeProducts(1);
  expect(subjects(await take(answer.changes, 1))).toEqual(pks(made));
});

test('what another instance writes comes as well', async () => {
  const { changes } = await follower();
  const other = await new Shop().start();
  try {
    const made = await other.makeProducts(2);
    expect(subjects(await take(changes, 2))).toEqual(pks(made));
  } finally {
    await other.stop();
  }
});

describe('after a cursor', () => {
  test('comes what followed it, however long ago, and then what is new, each once', async () => {
    const made = await shop.makeProducts(1);
    const before = await follower();
    made.push(...(await shop.makeProducts(2)));
    const [first] = await take(before.changes, 1);
    await shop.sql(`insert into change (kind, subject) select 'product.changed', 0 from generate_series(1, ${AT_ONCE})`);
    const { changes } = await follower(first && cursorOf(first));
    made.push(...(await shop.makeProducts(1)));
    const all = subjects(await take(changes, AT_ONCE + 2));
    expect([all[0], all.at(-1)]).toEqual(pks(made.slice(2)));
    expect(all.slice(1, -1)).toEqual(Array(AT_ONCE).fill(0));
  });

  describe('while it is read', () => {
    const refusal = new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
    /** One who has missed a hundred changes and has had the first of them. */
    const behind = async () => {
      const { changes, listening } = await follower();
      await shop.makeProducts(1);
      const [first] = await take(changes, 1);
      listening.end();
      await shop.sql(`insert into change (kind, subject) select 'product.changed', n from generate_series(1, 100) n`);
      const late = await follower(first && cursorOf(first));
      const { answer, statements } = await counted(() => take(late.changes, 1));
      expect(subjects(answer)).toEqual([1]);
      return { ...late, statements };
    };

    test('little of it is kept for each who waits for its client', async () => {
      const { statements } = await behind();
      // The feed that all share reads 500 at a time, whenever it is due.
      expect(statements.filter((text) => text.includes('as horizon') && !/limit 500\b/.test(text))).toEqual([
        expect.stringMatching(/limit 20\b/),
      ]);
    });

    test('who is refused gets no more of it, and nothing more is read', async () => {
      const { changes, listening } = await behind();
      listening.end(refusal);
      const { answer, statements } = await counted(() => take(changes, 1));
      expect([answer, statements]).toEqual([[], []]);
    });

    test('who falls behind is told so at once', async () => {
      const slow = await behind();
      const quick = await follower();
      for (let written = 0; written < TOO_MANY; written += AT_ONCE) {
        await shop.sql(`insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${AT_ONCE}) n`);
        await take(quick.changes, AT_ONCE);
      }
      await expect(slow.changes.next()).rejects.toMatchObject({ code: 'FELL_BEHIND' });
    });
  });

  test('that the log no longer has is CHANGES_LOST', async () => {
    const { changes } = await follower();
    await shop.makeProduct();
    const [first] = await take(changes, 1);
    await shop.sql('delete from change');
    await expect(follower(first && cursorOf(first))).rejects.toMatchObject({ code: 'CHANGES_LOST' });
  });

  test('that is none is BAD_USER_INPUT', async () => {
    await expect(follower('nonsense')).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

describe('who falls behind', () => {
  test('is ended and told why, at once; the others go on', async () => {
    await shop.makeProducts(2);
    const [quick, slow] = [await follower(), await follower()];
    for (let written = 0; written < TOO_MANY; written += AT_ONCE) {
      await shop.sql(`insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${AT_ONCE}) n`);
      expect(await take(quick.changes, AT_ONCE)).toHaveLength(AT_ONCE);
    }
    expect(slow.listening.refusal).toMatchObject({ code: 'FELL_BEHIND' });
    await expect(slow.changes.next()).rejects.toMatchObject({ code: 'FELL_BEHIND' });
    expect(quick.listening.refusal).toBeUndefined();
    await touch(1, 2);
    expect(await take(quick.changes, 2)).toHaveLength(2);
  });

  test('where nobody reads on, nobody falls behind', async () => {
    const { listening, changes } = await follower();
    await shop.sql(`insert into change (kind, subject) select 'product.changed', n from generate_series(1, ${TOO_MANY}) n`);
    expect(subjects(await take(changes, TOO_MANY)).at(-1)).toBe(TOO_MANY);
    expect(listening.refusal).toBeUndefined();
  });
});

test('where the database counts its transactions from before, everyone is told that changes are lost', async () => {
  const { changes, listening } = await follower();
  const waiting = changes.next();
  // As after a backup that was put back: for the app, what it has read is yet to come.
  const { statements } = shop.database;
  const read = statements.read.bind(statements);
  statements.read = async (...args) => {
    const rows = await read(...args);
    return args[0].text.includes('as horizon') ? rows.map(([, ...cells]) => ['3', ...cells]) : rows;
  };
  try {
    await expect(waiting).rejects.toMatchObject({ code: 'CHANGES_LOST' });
    expect(listening.refusal).toMatchObject({ code: 'CHANGES_LOST' });
  } finally {
    statements.read = read;
  }
});
