import { once } from 'node:events';
import { expect, test } from '../support/jest.ts';
import { from } from 'pg-copy-streams';
import * as log from '../../src/features/change-log/change-log.ts';
import { useSecondSession } from '../support/second-session.ts';
import { settled } from '../support/settled.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();
const other = useSecondSession();

test('a change committed after a later one is not missed', async () => {
  const { pk } = await shop.makeProduct();
  await settled(shop);
  const head = await log.readHead(shop.context());
  await other.query('begin');
  await other.query(`update product set price = 5 where pk = ${pk}`);
  const later = await shop.makeProduct();
  const before = await log.readAfter(shop.context(), head, 10);
  expect(before.changes).toEqual([]);
  await other.query('commit');
  await settled(shop);
  const { changes } = await log.readAfter(shop.context(), before.position, 10);
  expect(changes.map(({ kind, subject }) => `${kind} ${subject}`)).toEqual([
    `product.changed ${pk}`,
    `product.created ${later.pk}`,
  ]);
});

test('rows added by COPY are recorded', async () => {
  const copy = other.query(
    from('copy product (name, barcode, price, created_at, updated_at) from stdin'),
  );
  copy.end('Ink\t5901234123457\t1\tnow\tnow\n');
  await once(copy, 'finish');
  expect(await shop.sql('select kind from change')).toEqual([{ kind: 'product.created' }]);
});
