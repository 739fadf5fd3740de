import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { changesOf, recordEach, type Actor } from '../audit/audit.log.ts';
import { identifier, sql, type Sql } from '../../database/sql.ts';
import { COLUMNS, FIELDS, isOptional, kindOf } from './product.columns.ts';
import type { ProductField } from './product.rules.ts';

const NEXT_PK = sql`nextval('product_pk_seq')`;
/** The changes of a creation in the audit trail. */
const CREATED = changesOf(
  'after',
  auditedOf((field) => !isOptional(field)),
  auditedOf(isOptional),
);

/**
 * Start of a statement that inserts those `drafts` (the fields' columns and `place`) whose barcode
 * is new. Primary keys follow `place`, unless the column `reserved` has one. Only new products use a
 * key, because imports with a key for every row would exhaust them. Rows are inserted by barcode, so
 * that concurrent statements cannot deadlock. The caller adds `on conflict (barcode)` for barcodes
 * that were inserted meanwhile.
 */
export function insertNew(drafts: Sql, now: Date, reserved?: Sql): Sql {
  const pk = reserved ? sql`coalesce(${reserved}, ${NEXT_PK})` : NEXT_PK;
  return sql`
    insert into product (pk, ${COLUMNS}, created_at, updated_at)
    select pk, ${COLUMNS}, ${now}::timestamptz, ${now}::timestamptz from (
      select ${pk} as pk, ${COLUMNS} from (${newDrafts(drafts)}) as new
    ) as numbered order by barcode`;
}

/**
 * Statement that reserves primary keys, in order, for new barcodes, and returns these and the keys.
 */
export function reserveNew(barcodes: readonly string[]): Sql {
  const drafts = sql`select * from unnest(${barcodes}::text[]) with ordinality as given (barcode, place)`;
  return sql`select barcode, ${NEXT_PK} as pk from (${newDrafts(drafts)}) as new`;
}

function newDrafts(drafts: Sql): Sql {
  return sql`select * from (${drafts}) as draft where not exists (select from product where product.barcode = draft.barcode) order by place`;
}

/** Statement that runs `insertSql`, records each product in the audit trail, returns `columns`. */
export function insertWithAudit(ctx: Actor, insertSql: Sql, columns: Sql): Sql {
  const recordCreated = recordEach(ctx, 'product.created', {
    from: sql`from made order by pk`,
    kind: AuditSubjectKind.PRODUCT,
    key: sql`pk`,
    name: sql`name`,
    changes: CREATED,
  });
  return sql`with made as (${insertSql} returning ${columns}), noted as (${recordCreated}) select ${columns} from made as product`;
}

function auditedOf(isMeant: (field: ProductField) => boolean): Record<string, Sql> {
  return Object.fromEntries(
    FIELDS.filter(isMeant).map((field) => [field, kindOf(field).audited(identifier(field))]),
  );
}
