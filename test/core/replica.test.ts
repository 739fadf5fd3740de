import { expect, test } from '../support/jest.ts';
import type { Caller, Context } from '../../src/request/context.ts';
import { inTransaction } from '../../src/request/context.ts';
import { onReplica } from '../../src/request/on-replica.ts';
import type { Scope } from '../../src/core/scopes.ts';
import type { Statements } from '../../src/database/sql.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const replica: Statements = { commits: 0, read: async () => [], write: async () => [] };
const callerWith = (...scopes: Scope[]): Caller => ({
  pk: 1,
  username: 'ada',
  scopes: new Set(scopes),
});
const context = (facts: Partial<Context> = {}): Context => ({
  ...shop.context(),
  replica,
  ...facts,
});

test('callers without a write scope read from the replica', () => {
  for (const ctx of [
    context(),
    context({ caller: callerWith() }),
    context({ caller: callerWith('users:read') }),
  ]) {
    expect(onReplica(ctx).statements).toBe(replica);
  }
});

test('callers with a write scope read from the primary, with credentials or without', () => {
  const { config } = shop;
  const open = context({ config: { ...config, anonymousScopes: ['products:write'] } });
  for (const ctx of [
    context({ caller: callerWith('products:write') }),
    context({ caller: callerWith('blog:write') }),
    open,
  ]) {
    expect(onReplica(ctx).statements).toBe(shop.database.statements);
  }
});

test('a transaction reads its own snapshot, and without a replica all reads use the primary', async () => {
  const ctx = context();
  await inTransaction(ctx, async (tx) => expect(onReplica(tx)).toBe(tx));
  const { replica: _none, ...without } = ctx;
  expect(onReplica(without)).toBe(without);
});
