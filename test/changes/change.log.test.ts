import { beforeEach, describe, expect, test } from '../support/jest.ts';
import * as log from '../../src/features/change-log/change-log.ts';
import { inTransaction } from '../../src/request/context.ts';
import { productFromRow } from '../../src/features/products/product.entity.ts';
import * as products from '../../src/features/products/product.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { openSession } from '../support/logins.ts';
import { insertingMany } from '../support/many-products.ts';
import { settled } from '../support/settled.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const DAY_MS = 86_400_000;
/** Maximum number of rows of a statement that are recorded individually. */
const MANY = 1_000;
const BEGINNING = { tx: '0', pk: '0' };

const shop = useShop();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});

const readAfter = async (place: log.LogPosition, limit = 10_000) => {
  await settled(shop);
  return log.readAfter(shop.context(), place, limit);
};
const readAll = async () => (await readAfter(BEGINNING)).changes;
const recorded = async () => (await readAll()).map(({ kind, subject }) => `${kind} ${subject}`);
describe('every change of a product is recorded', () => {
  const input = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
  const create = () => shop.rest('POST', '/api/v1/shop/product/', { as: seller, json: input });

  test('with every column that a product is read with', async () => {
    await create();
    const [change] = await readAll();
    const product = await products.find(shop.context(), String(change?.subject));
    expect(Object.keys(productFromRow(change?.state ?? {})).toSorted()).toEqual(
      Object.keys(product ?? {}).toSorted(),
    );
  });

  test('a rejected change is not recorded', async () => {
    await create();
    expect((await create()).status).toBe(409);
    expect(await recorded()).toHaveLength(1);
  });

  test('a rolled back change is not recorded', async () => {
    const rolledBack = inTransaction(shop.context(), async ({ em }) => {
      await em.execute(insertingMany(1));
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    expect(await recorded()).toEqual([]);
  });

  test('an update without a difference is not recorded', async () => {
    const { pk } = await shop.makeProduct();
    await shop.sql(`update product set price = price, updated_at = updated_at`);
    expect(await recorded()).toEqual([`product.created ${pk}`]);
  });

  test('a new primary key is a deletion and a creation', async () => {
    const { pk } = await shop.makeProduct();
    await shop.sql(`update product set pk = ${pk + 1}`);
    expect((await recorded()).slice(1)).toEqual([
      `product.deleted ${pk}`,
      `product.created ${pk + 1}`,
    ]);
  });

  test('a statement with a thousand products is a thousand changes, and with one more one bulk change', async () => {
    await shop.sql(insertingMany(MANY));
    expect(await recorded()).toHaveLength(MANY);
    await shop.sql(insertingMany(1, MANY + 1));
    await shop.sql(`update product set price = 2`);
    await shop.sql(`delete from product`);
    expect((await readAll()).slice(MANY + 1)).toMatchObject([
      { kind: 'products.changed', subject: null, state: { count: MANY + 1 } },
      { kind: 'products.changed', subject: null, state: { count: MANY + 1 } },
    ]);
  });

  test('TRUNCATE is one bulk change', async () => {
    await shop.makeProduct();
    await shop.sql('truncate product');
    expect((await readAll()).slice(1)).toMatchObject([
      { kind: 'products.changed', subject: null, state: null },
    ]);
  });
});

describe('the end of a session is recorded', () => {
  const login = async (user: User) => (await openSession(shop, user)).key;
  const sids = async () =>
    (await shop.sql('select sid from session order by created_at')).map(({ sid }) => String(sid));
  const ended = async () => (await readAll()).filter(({ kind }) => kind === 'session.ended');

  test('by logging out everywhere, and by a changed password', async () => {
    const key = await login(seller);
    await login(seller);
    const change = `mutation { changePassword(current: ${JSON.stringify(PASSWORD)}, new: "another good one") { id } }`;
    await shop.graphql(change, {}, { sessionKey: key });
    expect(await ended()).toHaveLength(1);
    await shop.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey: key });
    expect(await ended()).toHaveLength(2);
  });

  test('by deleting its user', async () => {
    await login(seller);
    const [sid] = await sids();
    await shop.sql('delete from "user"');
    expect(await ended()).toMatchObject([{ subject: sid }]);
  });

  test('not when an expired session is deleted', async () => {
    await login(seller);
    await shop.sql(`update session set created_at = now() - interval '3 days', last_seen_at = now() - interval '3 days',
      expires_at = now() - interval '1 day'`);
    await shop.sql('delete from session');
    expect(await ended()).toEqual([]);
  });

  test('not when a session is used or refreshed', async () => {
    const key = await login(seller);
    shop.advanceClock(120_000);
    await shop.rest('GET', '/users/me/', { sessionKey: key });
    expect(await ended()).toEqual([]);
  });
});

describe('reading', () => {
  test('continues after its cursor, a few changes at a time', async () => {
    const [first, second, third] = await shop.makeProducts(3);
    const piece = await readAfter(BEGINNING, 2);
    expect(piece.changes.map(({ subject }) => subject)).toEqual([
      String(first?.pk),
      String(second?.pk),
    ]);
    const rest = await readAfter(piece.position, 2);
    expect(rest.changes.map(({ subject }) => subject)).toEqual([String(third?.pk)]);
    expect((await readAfter(rest.position, 2)).changes).toEqual([]);
  });
});

describe('sweeping', () => {
  test('deletes only changes older than CHANGE_LOG_RETENTION_DAYS', async () => {
    const [, , third] = await shop.makeProducts(3);
    await shop.sql(
      `update change set at = now() - interval '4 days' where subject <> '${third?.pk}'`,
    );
    expect(await log.sweep(shop.context())).toBe(2);
    expect(await recorded()).toEqual([`product.created ${third?.pk}`]);
    shop.advanceClock(4 * DAY_MS);
    expect(await log.sweep(shop.context())).toBe(1);
  });

  test('deletes all of them, however many', async () => {
    await shop.sql(
      `insert into change (at, kind) select now() - interval '4 days', 'products.changed' from generate_series(1, 12000)`,
    );
    const { pk } = await shop.makeProduct();
    expect(await log.sweep(shop.context())).toBe(12_000);
    expect(await recorded()).toEqual([`product.created ${pk}`]);
  });

  test('keeps all changes after one that it keeps', async () => {
    const [, second] = await shop.makeProducts(3);
    await shop.sql(
      `update change set at = now() - interval '4 days' where subject <> '${second?.pk}'`,
    );
    expect(await log.sweep(shop.context())).toBe(1);
    expect(await recorded()).toHaveLength(2);
  });

  test('deletes changes of another server with future transactions', async () => {
    await shop.makeProduct();
    await shop.sql(`insert into change (tx, kind) values ('900000000000', 'products.changed')`);
    expect(await log.sweep(shop.context())).toBe(1);
    expect(await recorded()).toHaveLength(1);
  });
});
