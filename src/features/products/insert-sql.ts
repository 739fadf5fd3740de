import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { changesOf, notingEach, type Acting } from '../audit/audit.log.ts';
import { sql, type Sql } from '../../database/sql.ts';

/** The primary key of the next product. */
const NEXT_PK = sql`nextval('product_pk_seq')`;

/**
 * The beginning of a statement that adds products: those of `drafts`, with the columns name, barcode, price and place, that have a new barcode. Primary keys
 * run in the order of their places, unless `reserved`, a column of theirs, has one, and only what is new takes one: there are not so many of them that each import could
 * take one for every row. They are written by barcode, so that of several such statements at once none waits for another in a circle. What to do with a barcode
 * that comes up meanwhile is for `on conflict (barcode)` to say.
 */
export function insertNew(drafts: Sql, now: Date, reserved?: Sql): Sql {
  const pk = reserved ? sql`coalesce(${reserved}, ${NEXT_PK})` : NEXT_PK;
  return sql`
    insert into product (pk, name, barcode, price, created_at, updated_at)
    select pk, name, barcode, price, ${now}::timestamptz, ${now}::timestamptz from (
      select ${pk} as pk, name, barcode, price from (${newOf(drafts)}) as new
    ) as numbered order by barcode`;
}

/** The statement that reserves primary keys for those of these barcodes that are new, in their order, and answers those barcodes with their keys. */
export function reserveNew(barcodes: readonly string[]): Sql {
  const drafts = sql`select * from unnest(${barcodes}::text[]) with ordinality as given (barcode, place)`;
  return sql`select barcode, ${NEXT_PK} as pk from (${newOf(drafts)}) as new`;
}

function newOf(drafts: Sql): Sql {
  return sql`select * from (${drafts}) as draft where not exists (select from product where product.barcode = draft.barcode) order by place`;
}

/** The whole statement that adds products as `insertion` does, notes each in the audit trail, and answers these columns of each. */
export function insertNoted(ctx: Acting, insertion: Sql, columns: Sql): Sql {
  const created = notingEach(ctx, 'product.created', {
    from: sql`from made order by pk`,
    kind: AuditSubjectKind.PRODUCT,
    key: sql`pk`,
    name: sql`name`,
    changes: changesOf('after', { name: sql`name`, barcode: sql`barcode`, price: sql`round(price, 2)::text` }),
  });
  return sql`with made as (${insertion} returning ${columns}), noted as (${created}) select ${columns} from made as product`;
}
