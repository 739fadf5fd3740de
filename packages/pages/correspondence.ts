/**
 * A part of a REST response and the part of the GraphQL data that has the same values. Members of a
 * path are separated by `.`; `*` stands for every entry of a list, and an empty path for the whole.
 */
export interface Correspondence {
  rest: string;
  graphql: string;
  /**
   * How the parts are compared. `value` (default): they are equal; an ID is a string in GraphQL.
   * `presence`: both or neither are null, false or 0. `new`: each request creates its own string.
   */
  as?: 'value' | 'presence' | 'new';
  /** Path of the flag that the GraphQL list has further pages. The REST list is then longer. */
  hasMore?: string;
}

/** Values that differ, as JSON. */
interface Difference {
  /** Path in the GraphQL data, with indexes. */
  at: string;
  rest: string;
  graphql: string;
}

/** The result of a comparison. */
export interface Outcome {
  /** Number of compared values. */
  compared: number;
  /** Number of integers of the REST response that are an ID, which is a string, in GraphQL. */
  ids: number;
  differences: Difference[];
  /** Lengths of the lists, if GraphQL returned only the first page. */
  firstPage?: { rest: number; graphql: number };
}

/**
 * Compares a REST response with the data of its GraphQL equivalent. `leftOut` has the paths, without
 * `*`, that the operation does not select.
 */
export function compareAnswers(
  body: unknown,
  data: unknown,
  correspondences: readonly Correspondence[],
  leftOut: ReadonlySet<string> = new Set(),
): Outcome {
  const outcome: Outcome = { compared: 0, ids: 0, differences: [] };
  for (const { rest, graphql, as = 'value', hasMore } of correspondences) {
    const path = membersOf(graphql).filter((member) => member !== '*');
    if (leftOut.has(path.join('.'))) continue;
    let left = valueAt(body, membersOf(rest));
    const right = valueAt(data, membersOf(graphql));
    const at = path.join('.');
    if (as === 'value') {
      const more =
        hasMore !== undefined && (leftOut.has(hasMore) || valueAt(data, membersOf(hasMore)));
      if (more === true && Array.isArray(left) && Array.isArray(right)) {
        const lengths = { rest: left.length, graphql: right.length };
        if (lengths.rest > lengths.graphql) outcome.firstPage = lengths;
        else if (!leftOut.has(hasMore)) differ(outcome, hasMore, lengths.rest, lengths.graphql);
        left = left.slice(0, right.length);
      }
      compareValues(outcome, left, right, at, path, leftOut);
    } else {
      outcome.compared++;
      const same =
        as === 'new' ? isText(left) && isText(right) : isPresent(left) === isPresent(right);
      if (!same) differ(outcome, at, left, right);
    }
  }
  return outcome;
}

function compareValues(
  outcome: Outcome,
  rest: unknown,
  graphql: unknown,
  at: string,
  path: readonly string[],
  leftOut: ReadonlySet<string>,
): void {
  if (leftOut.has(path.join('.'))) return;
  if (Array.isArray(rest) && Array.isArray(graphql)) {
    if (rest.length !== graphql.length)
      differ(outcome, `${at}.length`, rest.length, graphql.length);
    for (let index = 0; index < Math.min(rest.length, graphql.length); index++)
      compareValues(outcome, rest[index], graphql[index], `${at}[${index}]`, path, leftOut);
  } else if (isObject(rest) && isObject(graphql)) {
    for (const name of new Set([...Object.keys(rest), ...Object.keys(graphql)]))
      compareValues(outcome, rest[name], graphql[name], `${at}.${name}`, [...path, name], leftOut);
  } else {
    outcome.compared++;
    const isId = Number.isInteger(rest) && graphql === String(rest);
    if (isId) outcome.ids++;
    else if (rest !== graphql) differ(outcome, at, rest, graphql);
  }
}

function differ(outcome: Outcome, at: string, rest: unknown, graphql: unknown): void {
  outcome.differences.push({ at, rest: textOf(rest), graphql: textOf(graphql) });
}

function textOf(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

function membersOf(path: string): string[] {
  return path === '' ? [] : path.split('.');
}

function valueAt(value: unknown, [member, ...others]: readonly string[]): unknown {
  if (member === undefined) return value;
  if (member === '*')
    return Array.isArray(value) ? value.map((entry) => valueAt(entry, others)) : undefined;
  return isObject(value) ? valueAt(value[member], others) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== 0;
}
