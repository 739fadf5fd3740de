import { IsolationLevel } from '@mikro-orm/postgresql';
import { withContext, type Context } from '../../../request/context.ts';
import { identifier, join, raw, sql, type Sql } from '../../../database/sql.ts';
import { countOf } from '../../../pagination/row-counts.ts';
import { batchesOf, jsonHead, readBatch, type Batch } from '../json-stream.ts';
import { FIELDS, isOptional, kindOf } from '../product.columns.ts';
import { FILE_COLUMNS, type Format } from './file-columns.ts';
import { PRODUCT_ROW_COUNTS } from '../product-lists.ts';
import { protectedCell, protectedHeader } from './spreadsheet-cells.ts';

const BYTE_ORDER_MARK = '\ufeff';

/** A part of a file: its text, and its number of products. */
type FilePart = Pick<Batch, 'text' | 'count'>;

/**
 * Yields the catalogue by pk as parts of a file, from one snapshot. With `forSpreadsheets`, an
 * apostrophe in a CSV file protects texts that a spreadsheet would change (spreadsheet-cells.ts).
 */
export async function* exportCatalogue(
  ctx: Context,
  format: Format,
  forSpreadsheets = false,
): AsyncGenerator<FilePart> {
  if (format === 'csv') yield { text: csvHeader(forSpreadsheets), count: 0 };
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

// Without the mark, some spreadsheets assume the encoding of their system.
function csvHeader(forSpreadsheets: boolean): string {
  return forSpreadsheets
    ? `${BYTE_ORDER_MARK}${FILE_COLUMNS.map(protectedHeader).join()}\n`
    : `${FILE_COLUMNS.join()}\n`;
}

function csvLine(forSpreadsheets: boolean): Sql {
  const cells = FIELDS.map((field) => {
    const column = identifier(field);
    const cell = kindOf(field).csv(forSpreadsheets ? protectedCell(field, column) : column);
    return isOptional(field) ? sql`coalesce(${cell}, '')` : cell;
  });
  return sql`
    pk || ',' || ${join(cells, ` || ',' || `)}
    || ',' || ${isoTime('created_at')} || ',' || ${isoTime('updated_at')} || E'\\n'`;
}
