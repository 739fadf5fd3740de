import type { Context } from '../request/context.ts';
import {
  fingerprint,
  invalidCursor,
  rankIn,
  readCursor,
  writeCursor,
  type Bound,
  type OrderColumn,
} from './cursor.ts';
import { lazily, readSize, RowEdge, type Page, type PageArgs } from './keyset.ts';
import { ListQuery, NO_OWNER, type ListDefinition } from './list-definition.ts';
import { shapeOf } from '../database/row-mapper.ts';
import type { Cell } from '../database/sql.ts';

/** A part of a ranked list. It precedes all parts of a higher rank. */
export interface RankedPart<T extends object> {
  /** Part of the cursors, so the rank of a part must not change. */
  rank: number;
  list: ListDefinition<T>;
}

/** Lists that are read as one, the lowest rank first. Each entry is in one part only. */
export interface RankedList<T extends object> {
  parts: readonly RankedPart<T>[];
  /** All parts as one list, for the count. Its name, order and filter identify the cursors. */
  whole: ListDefinition<T>;
}

/** A part with its statements. */
interface RankedQuery<T extends object> {
  rank: number;
  /** Columns of its cursors: the rank, then the part's order. */
  order: readonly OrderColumn[];
  query: ListQuery<T>;
}

/** A position in one of the parts. */
interface Position<T extends object> {
  part: RankedQuery<T>;
  bound: Bound;
}

const RANK: OrderColumn = { property: 'rank', kind: 'rank' };

/** Like `readPage`, for a ranked list. Reads only the parts that the page needs. */
export async function readRankedPage<T extends object>(
  ctx: Context,
  list: RankedList<T>,
  args: PageArgs,
): Promise<Page<T>> {
  const { size, backward } = readSize(args);
  const { name, entity, order, descending, filter } = list.whole;
  const shape = shapeOf(ctx, entity);
  const digest = fingerprint(name, order, descending, filter);
  const parts = list.parts.map((part): RankedQuery<T> => ({
    rank: part.rank,
    order: [RANK, ...part.list.order],
    query: new ListQuery(ctx, part.list, shape.properties),
  }));
  const after = positionOf(parts, digest, 'after', args.after);
  const before = positionOf(parts, digest, 'before', args.before);

  const rows = await readParts(
    backward ? parts.toReversed() : parts,
    after,
    before,
    backward,
    size + 1,
  );
  const hasMore = rows.length > size;
  if (hasMore) rows.length = size;
  if (backward) rows.reverse();
  return {
    edges: rows.map(
      ({ part, row }) =>
        new RowEdge(row, (cells) => cursorOf(part, digest, cells), shape.entity(row)),
    ),
    hasNextPage: async () =>
      backward ? before !== undefined && (await existsBeyond(parts, before, 'after')) : hasMore,
    hasPreviousPage: async () =>
      backward ? hasMore : after !== undefined && (await existsBeyond(parts, after, 'before')),
    totalCount: lazily(
      async () =>
        (await new ListQuery(ctx, list.whole, shape.properties).counts()).get(NO_OWNER) ?? 0,
    ),
  };
}

function positionOf<T extends object>(
  parts: readonly RankedQuery<T>[],
  digest: string,
  argument: string,
  cursor: string | null | undefined,
): Position<T> | undefined {
  if (cursor == null) return undefined;
  const rank = rankIn(cursor);
  const part = parts.find((candidate) => candidate.rank === rank);
  if (!part) throw invalidCursor(argument);
  const [, ...bound] = readCursor(part.order, digest, argument, cursor);
  return { part, bound };
}

// Reads the parts one after another, because the first ones often suffice.
async function readParts<T extends object>(
  parts: readonly RankedQuery<T>[],
  after: Position<T> | undefined,
  before: Position<T> | undefined,
  backward: boolean,
  limit: number,
): Promise<{ part: RankedQuery<T>; row: Cell[] }[]> {
  const rows: { part: RankedQuery<T>; row: Cell[] }[] = [];
  for (const part of parts) {
    if ((after && part.rank < after.part.rank) || (before && part.rank > before.part.rank))
      continue;
    if (rows.length === limit) break;
    const partRows = await part.query.rows(
      boundIn(part, after),
      boundIn(part, before),
      backward,
      limit - rows.length,
    );
    rows.push(...(partRows.get(NO_OWNER) ?? []).map((row) => ({ part, row })));
  }
  return rows;
}

// Checks the position's own part first: its row nearly always still exists.
async function existsBeyond<T extends object>(
  parts: readonly RankedQuery<T>[],
  { part, bound }: Position<T>,
  side: 'before' | 'after',
): Promise<boolean> {
  if (((await part.query.existsBeyond(side, bound)).get(NO_OWNER) ?? 0) > 0) return true;
  const others = parts.filter(({ rank }) =>
    side === 'before' ? rank < part.rank : rank > part.rank,
  );
  return (await readParts(others, undefined, undefined, false, 1)).length > 0;
}

function boundIn<T extends object>(
  part: RankedQuery<T>,
  position: Position<T> | undefined,
): Bound | undefined {
  return position?.part === part ? position.bound : undefined;
}

function cursorOf<T extends object>(
  { rank, order, query }: RankedQuery<T>,
  digest: string,
  row: readonly Cell[],
): string {
  return writeCursor(order, digest, [rank, ...query.boundOf(row)]);
}
