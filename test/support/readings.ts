import type pg from 'pg';
import type { Answer, Shop } from './shop.ts';
import { recordStatements, type SentStatement } from './statements.ts';

/** A small table, with a row for each 16,384 products, that is always read as a whole. */
const SMALL = 'product_row_count';
/** From the sixth execution on, PostgreSQL may use a generic plan (its manual, PREPARE). */
const EXECUTIONS_BEFORE_GENERIC_PLAN = 6;

/** A node of a plan in the output of EXPLAIN. */
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

/** How a plan reads, and the largest number of rows that one scan reads. */
export interface QueryPlan {
  indexes: string[];
  /** Large tables with a sequential scan. */
  sequential: string[];
  sorts: string[];
  rows: number;
}

/**
 * Returns the plans of a request's statements that match this pattern: for their values and, if
 * they are prepared, the generic ones.
 */
export async function queryPlansOf(
  client: pg.Client,
  shop: Shop,
  sendRequest: () => Promise<Answer>,
  of: RegExp,
  isPrepared = true,
): Promise<QueryPlan[]> {
  // As after a commit: the app reads the version of the catalogue again.
  shop.database.statements.commits++;
  const recorded = await recordStatements(sendRequest);
  const { status, body } = recorded.answer;
  if (status !== 200 || body.errors) throw new Error(JSON.stringify(body));
  const sent = recorded.sent.filter(({ text }) => of.test(text));
  if (sent.length === 0) throw new Error(`No statement reads ${of.source}`);
  const found: QueryPlan[] = [];
  for (const statement of sent) {
    for (const executions of isPrepared ? [0, EXECUTIONS_BEFORE_GENERIC_PLAN] : [0])
      found.push(await explain(client, statement, executions));
  }
  return found;
}

async function explain(
  client: pg.Client,
  { text, values }: SentStatement,
  executions: number,
): Promise<QueryPlan> {
  const execute = `execute explained ${values.length > 0 ? `(${values.map((value) => literal(client, value)).join()})` : ''}`;
  await client.query(`prepare explained as ${text}`);
  for (let time = 0; time < executions; time++) await client.query(execute);
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `explain (analyze, format json) ${execute}`,
  );
  await client.query('deallocate explained');
  const nodes = nodesOf(rows[0]?.['QUERY PLAN'][0].Plan);
  return {
    indexes: [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].toSorted(),
    sequential: nodes
      .filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== SMALL)
      .map((node) => node['Relation Name'] ?? ''),
    sorts: nodes.map((node) => node['Node Type']).filter((type) => type.includes('Sort')),
    rows: Math.max(
      0,
      ...nodes
        .filter((node) => node['Relation Name'] !== undefined || node['Index Name'] !== undefined)
        .map(rowsRead),
    ),
  };
}

function nodesOf(node: PlanNode | undefined): PlanNode[] {
  return node ? [node, ...(node.Plans ?? []).flatMap(nodesOf)] : [];
}

function rowsRead(node: PlanNode): number {
  return (
    (node['Actual Rows'] +
      (node['Rows Removed by Filter'] ?? 0) +
      (node['Rows Removed by Index Recheck'] ?? 0)) *
    node['Actual Loops']
  );
}

function literal(client: pg.Client, value: unknown): string {
  if (typeof value === 'number' || typeof value === 'string')
    return client.escapeLiteral(String(value));
  if (Buffer.isBuffer(value)) return client.escapeLiteral(`\\x${value.toString('hex')}`);
  if (Array.isArray(value)) return client.escapeLiteral(`{${value.join()}}`);
  if (value instanceof Date) return client.escapeLiteral(value.toISOString());
  if (value === null) return 'null';
  throw new TypeError('no statement here has such a value');
}
