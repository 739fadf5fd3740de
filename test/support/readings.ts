import pg from 'pg';
import type { Answer, Shop } from './shop.ts';

/** It has a row for each 65,536 products, and is read whole. */
const SMALL = 'product_tally';
/** From the sixth execution on, PostgreSQL may keep one plan for all values (its manual, PREPARE). */
const BEFORE_PLAN_IS_KEPT = 6;

/** A statement as the app sent it. */
interface Sent {
  text: string;
  values: readonly unknown[];
}

/** A node of a plan, as EXPLAIN tells of it. */
interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** How a plan reads, and how many rows the scan of most reads. */
export interface Reading {
  indexes: string[];
  /** Tables that are read from their start, where that is long. */
  sequential: string[];
  sorts: string[];
  rows: number;
}

/**
 * How the statements of a request that read this table do so: planned for their values, and as PostgreSQL plans them in the long run; those that are
 * never prepared, for their values alone.
 */
export async function readingsOf(
  client: pg.Client,
  shop: Shop,
  ask: () => Promise<Answer>,
  of: RegExp,
  isPrepared = true,
): Promise<Reading[]> {
  const sent = (await sentFor(shop, ask)).filter(({ text }) => of.test(text));
  if (sent.length === 0) throw new Error(`nothing reads ${of.source}`);
  const found: Reading[] = [];
  for (const statement of sent) {
    for (const executions of isPrepared ? [0, BEFORE_PLAN_IS_KEPT] : [0]) found.push(await explained(client, statement, executions));
  }
  return found;
}

/** The statements that the app sends for a request that goes well. */
async function sentFor(shop: Shop, ask: () => Promise<Answer>): Promise<Sent[]> {
  // As after a commit: how far the catalogue has come is asked again.
  shop.database.statements.commits++;
  const query: unknown = Reflect.get(pg.Client.prototype, 'query');
  const sent: Sent[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const statement = Object(args[0]) as object;
    sent.push({ text: String(Reflect.get(statement, 'text')), values: (Reflect.get(statement, 'values') ?? args[1]) as unknown[] });
    return Reflect.apply(query as () => unknown, this, args);
  } as typeof pg.Client.prototype.query;
  try {
    const { status, body } = await ask();
    if (status !== 200 || body.errors) throw new Error(JSON.stringify(body));
    return sent;
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query);
  }
}

async function explained(client: pg.Client, { text, values }: Sent, executions: number): Promise<Reading> {
  const execute = `execute explained ${values.length > 0 ? `(${values.map((value) => literal(client, value)).join()})` : ''}`;
  await client.query(`prepare explained as ${text}`);
  for (let time = 0; time < executions; time++) await client.query(execute);
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`explain (analyze, format json) ${execute}`);
  await client.query('deallocate explained');
  const nodes = nodesOf(rows[0]?.['QUERY PLAN'][0].Plan);
  return {
    indexes: [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].toSorted(),
    sequential: nodes
      .filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== SMALL)
      .map((node) => node['Relation Name'] ?? ''),
    sorts: nodes.map((node) => node['Node Type']).filter((type) => type.includes('Sort')),
    rows: Math.max(0, ...nodes.filter((node) => node['Relation Name'] !== undefined || node['Index Name'] !== undefined).map(rowsRead)),
  };
}

function nodesOf(node: PlanNode | undefined): PlanNode[] {
  return node ? [node, ...(node.Plans ?? []).flatMap(nodesOf)] : [];
}

function rowsRead(node: PlanNode): number {
  return (
    (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) * node['Actual Loops']
  );
}

function literal(client: pg.Client, value: unknown): string {
  if (typeof value === 'number' || typeof value === 'string') return client.escapeLiteral(String(value));
  if (Buffer.isBuffer(value)) return client.escapeLiteral(`\\x${value.toString('hex')}`);
  if (Array.isArray(value)) return client.escapeLiteral(`{${value.join()}}`);
  if (value instanceof Date) return client.escapeLiteral(value.toISOString());
  if (value === null) return 'null';
  throw new TypeError('no statement here has such a value');
}
