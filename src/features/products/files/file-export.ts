import { IsolationLevel } from '@mikro-orm/postgresql';
import type { Selectable } from 'kysely';
import { withContext, type Context } from '../../../request/context.ts';
import { run, type Columns } from '../../../database/kysely.ts';
import { batchesOf } from '../json-stream.ts';
import { FIELDS, mapFields } from '../product.columns.ts';
import type { Product } from '../product.entity.ts';
import type { ProductField } from '../product.rules.ts';
import { FILE_COLUMNS, type Format } from './file-columns.ts';

type Row = Pick<Selectable<Columns<Product>>, 'pk' | ProductField | 'created_at' | 'updated_at'>;

/** Yields the catalogue by pk as parts of a file with their numbers of products, from one snapshot. */
export async function* exportCatalogue(
  ctx: Context,
  format: Format,
): AsyncGenerator<{ text: string; count: number }> {
  if (format === 'csv') yield { text: `${FILE_COLUMNS.join()}\n`, count: 0 };
  const lineOf = format === 'csv' ? csvLine : jsonLine;
  const em = ctx.em.fork();
  await em.begin({ isolationLevel: IsolationLevel.REPEATABLE_READ, readOnly: true });
  try {
    const source = withContext(ctx, { em, statements: undefined, loaders: new Map() });
    yield* batchesOf(async (after, limit) => {
      const rows = await readRows(source, after, limit);
      const text = rows.map(lineOf).join('');
      return { text, count: rows.length, last: rows.at(-1)?.pk ?? null };
    });
  } finally {
    await em.rollback();
  }
}

function readRows(ctx: Context, after: number, limit: number): Promise<Row[]> {
  return run(
    ctx,
    ctx.em
      .getKysely<{ product: Columns<Product> }>()
      .selectFrom('product')
      .select(['pk', ...FIELDS, 'created_at', 'updated_at'])
      .where('pk', '>', after)
      .orderBy('pk')
      .limit(limit),
  );
}

function jsonLine({ pk, created_at: createdAt, updated_at: updatedAt, ...fields }: Row): string {
  const values = mapFields(fields, ({ form }, value) =>
    form === 'number' ? Number(value) : value,
  );
  return `${JSON.stringify({ pk, ...values, createdAt, updatedAt })}\n`;
}

function csvLine({ pk, created_at: createdAt, updated_at: updatedAt, ...fields }: Row): string {
  const cells = Object.values(mapFields(fields, ({ csv }, value) => csv(value)));
  return `${[pk, ...cells, createdAt.toISOString(), updatedAt.toISOString()].join()}\n`;
}
