import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { globalId } from '../../src/api/node.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { queryPlansOf } from '../support/readings.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();
const client = useSecondSession();

const ENTRIES = 50_000;
const MAX_SCANNED_ROWS = 2_000;
const SIZE = 20;
const PAGE = `query ($first: Int, $filter: AuditEntryFilter) {
  auditEntries(first: $first, filter: $filter) { nodes { id } }
}`;

const TIME = 'audit_entry_at_pk_index';
const ACTOR = 'audit_entry_actor_name_at_pk_index';
const ACTION = 'audit_entry_action_at_pk_index';
const SUBJECT = 'audit_entry_subject_at_pk_index';

let reader: User;

// One entry a minute, by a hundred actors in turn, the first of them only long ago;
// five thousand products ten times each; one in a thousand a deletion.
beforeEach(async () => {
  reader = await shop.makeUser({ scopes: ['audit:read'] });
  await client.query(`
    insert into audit_entry (at, actor_kind, actor_name, action, subject_kind, subject_key, subject_name, changes)
    select timestamptz '2026-01-01Z' + n * interval '1 minute', 'user', case when n < 1000 then 'first' else 'user' || n % 100 end,
      case when n % 1000 = 0 then 'product.deleted' else 'product.changed' end, 'product', (n % 5000)::text, 'Product', '[]'
    from generate_series(1, ${ENTRIES}) as n`);
  await client.query('analyze audit_entry');
});

describe('a page of the audit trail is read from its index', () => {
  test.each([
    ['of all entries', undefined, [TIME], SIZE + 1],
    ['since a time', { since: '2026-02-01T00:00:00Z' }, [TIME], SIZE + 1],
    ['until a time long ago', { until: '2026-01-02T00:00:00Z' }, [TIME], SIZE + 1],
    ['by an actor', { actor: 'user7' }, [ACTOR], SIZE + 1],
    ['by an actor without recent actions', { actor: 'first' }, [ACTOR], SIZE + 1],
    [
      'by an actor, in a time',
      { actor: 'user7', since: '2026-01-05T00:00:00Z', until: '2026-01-10T00:00:00Z' },
      [ACTOR],
      SIZE + 1,
    ],
    ['by an action', { action: 'product.deleted' }, [ACTION], SIZE + 1],
    ['by a subject', { subject: globalId('Product', 77) }, [SUBJECT], SIZE + 1],
    [
      'by a subject and an actor',
      { subject: globalId('Product', 77), actor: 'user77' },
      [SUBJECT],
      SIZE + 1,
    ],
    [
      'by an actor and an action',
      { actor: 'user7', action: 'product.changed' },
      [ACTOR],
      MAX_SCANNED_ROWS,
    ],
  ])('%s', async (_what, filter, indexes, atMost) => {
    const query = () => shop.graphql(PAGE, { first: SIZE, filter }, { as: reader });
    const readings = await queryPlansOf(client, shop, query, /"audit_entry"/, filter === undefined);
    expect(readings.flatMap(({ sequential }) => sequential)).toEqual([]);
    expect([...new Set(readings.flatMap((reading) => reading.indexes))]).toEqual(indexes);
    expect(Math.max(...readings.map(({ rows }) => rows))).toBeLessThanOrEqual(atMost);
  });
});
