import { IsolationLevel } from '@mikro-orm/postgresql';
import { changed, type Context } from '../../../request/context.ts';
import { raw, sql, type Sql } from '../../../database/sql.ts';
import { countOf } from '../../../pagination/row-counts.ts';
import { batchesOf, JSON_HEAD, readBatch, type Batch } from '../json-stream.ts';
import { COLUMNS, type Format } from './file-columns.ts';
import { PRODUCT_TALLY } from '../product-lists.ts';

// What a spreadsheet takes for a formula where a cell begins with it (OWASP, "CSV Injection"). A name has no tabs and line breaks. Where commas are for
// decimals, a cell ends at a semicolon, and as the name is then no cell, its quotation marks do not keep it together.
const FORMULA = '(^|;"*)([=+@-])';

/** A part of a file: its text, and how many products are in it. */
type Piece = Pick<Batch, 'text' | 'count'>;

/**
 * The whole catalogue by pk as the text of a file, a piece at a time, as of one moment. On the embedded database each piece is as of a moment
 * of its own, for there a transaction keeps everyone else waiting. With `forSpreadsheets`, an apostrophe comes before what a spreadsheet
 * would take for formulas in names of a CSV file, so that it is no copy any more.
 */
export async function* catalogueAsFile(ctx: Context, format: Format, forSpreadsheets = false): AsyncGenerator<Piece> {
  if (format === 'csv') yield { text: `${COLUMNS.join()}\n`, count: 0 };
  const line = format === 'csv' ? csvLine(forSpreadsheets) : NDJSON_LINE;
  const read = (from: Context) => batchesOf((after, limit) => readBatch(from, line, after, limit));
  if (ctx.config.databaseUrl === undefined) {
    yield* read(ctx);
    return;
  }
  const em = ctx.em.fork();
  await em.begin({ isolationLevel: IsolationLevel.REPEATABLE_READ, readOnly: true });
  try {
    yield* read(changed(ctx, { em, statements: undefined, loaders: new Map() }));
  } finally {
    await em.rollback();
  }
}

/** How many products there are. */
export function size(ctx: Context): Promise<number> {
  return countOf(ctx, PRODUCT_TALLY);
}

const time = (column: string) => raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

const NDJSON_LINE = sql`
  ${JSON_HEAD} || ',"createdAt":"' || ${time('created_at')} || '","updatedAt":"' || ${time('updated_at')} || E'"}\\n'`;

// Only a name can hold what has to be quoted (RFC 4180, 2.6).
function csvLine(forSpreadsheets: boolean): Sql {
  const name = forSpreadsheets ? raw(`regexp_replace(name, '${FORMULA}', '\\1''\\2', 'g')`) : raw('name');
  return sql`
    pk || ',"' || replace(${name}, '"', '""') || '",' || barcode || ',' || price || ','
    || ${time('created_at')} || ',' || ${time('updated_at')} || E'\\n'`;
}
