import { IsolationLevel } from '@mikro-orm/postgresql';
import { withContext, type Context } from '../../../request/context.ts';
import { identifier, join, raw, sql, type Sql } from '../../../database/sql.ts';
import { countOf } from '../../../pagination/row-counts.ts';
import { batchesOf, jsonHead, readBatch, type Batch } from '../json-stream.ts';
import { FIELDS, isOptional, kindOf } from '../product.columns.ts';
import { FIELD_KINDS, type ProductField } from '../product.rules.ts';
import { FILE_COLUMNS, type Format } from './file-columns.ts';
import { PRODUCT_ROW_COUNTS } from '../product-lists.ts';

// Start of a cell that a spreadsheet evaluates as a formula (OWASP, "CSV Injection"). A name has no
// tabs or line breaks. In locales with decimal commas, semicolons separate cells: the quotation
// marks of the name then do not enclose a cell, and a semicolon in the name starts a new one.
const FORMULA = '(^|;"*)([=+@-])';

/** A part of a file: its text, and its number of products. */
type FilePart = Pick<Batch, 'text' | 'count'>;

/**
 * Yields the catalogue by pk as parts of a file, from one snapshot. With `forSpreadsheets`, an
 * apostrophe precedes formulas in the names of a CSV file, which is then no longer an exact copy.
 */
export async function* exportCatalogue(
  ctx: Context,
  format: Format,
  forSpreadsheets = false,
): AsyncGenerator<FilePart> {
  if (format === 'csv') yield { text: `${FILE_COLUMNS.join()}\n`, count: 0 };
  const line = format === 'csv' ? csvLine(forSpreadsheets) : NDJSON_LINE;
  const em = ctx.em.fork();
  await em.begin({ isolationLevel: IsolationLevel.REPEATABLE_READ, readOnly: true });
  try {
    const source = withContext(ctx, { em, statements: undefined, loaders: new Map() });
    yield* batchesOf((after, limit) => readBatch(source, line, after, limit));
  } finally {
    await em.rollback();
  }
}

/** Returns the number of products. */
export function countProducts(ctx: Context): Promise<number> {
  return countOf(ctx, PRODUCT_ROW_COUNTS);
}

const isoTime = (column: string) =>
  raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

const NDJSON_LINE = sql`
  ${jsonHead(FIELDS)} || ',"createdAt":"' || ${isoTime('created_at')} || '","updatedAt":"' || ${isoTime('updated_at')} || E'"}\\n'`;

function csvLine(forSpreadsheets: boolean): Sql {
  const cells = FIELDS.map((field) => {
    const isText = forSpreadsheets && FIELD_KINDS[field] === 'line';
    const cell = kindOf(field).csv(isText ? escapedFormulas(field) : identifier(field));
    return isOptional(field) ? sql`coalesce(${cell}, '')` : cell;
  });
  return sql`
    pk || ',' || ${join(cells, ` || ',' || `)}
    || ',' || ${isoTime('created_at')} || ',' || ${isoTime('updated_at')} || E'\\n'`;
}

function escapedFormulas(field: ProductField): Sql {
  return sql`regexp_replace(${identifier(field)}, ${raw(`'${FORMULA}', '\\1''\\2'`)}, 'g')`;
}
