/** Extensions by which a request asks the server for its cost and its number of statements. */
export const RECEIPT_REQUEST = { cost: true, statements: true };

interface Result {
  extensions?: { cost?: { requested: number | null; limit: number }; statements?: number };
}

const listeners = new Set<() => void>();
let last = '';

/** Returns what the last operation took, as a line of text. */
export function lastReceipt(): string {
  return last;
}

/** Calls the listener after each change. Returns a function that removes the listener. */
export function watchReceipts(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Removes the receipt of an earlier operation. */
export function clearReceipt(): void {
  change('');
}

/**
 * Writes the receipt of a response: its cost, duration, statements and length. Returns the response
 * without them, as other clients get it.
 */
export function takeReceipt(text: string, ms: number, name = 'Anonymous operation'): Result {
  const { extensions = {}, ...result } = JSON.parse(text) as Result;
  const { cost, statements, ...others } = extensions;
  const shown = Object.keys(others).length > 0 ? { ...result, extensions: others } : result;
  const bytes = new TextEncoder().encode(JSON.stringify(shown)).length;
  change(
    [
      ...(cost && cost.requested !== null
        ? [`cost ${numeral(cost.requested)} of ${numeral(cost.limit)}`]
        : []),
      `${numeral(ms)} ms`,
      ...(statements === undefined ? [] : [counted(statements, 'statement')]),
      counted(bytes, 'byte'),
    ].join(' · '),
    name,
  );
  return shown;
}

function change(facts: string, name = ''): void {
  last = facts === '' ? '' : `${name}: ${facts}`;
  for (const listener of listeners) listener();
}

function counted(count: number, what: string): string {
  return `${numeral(count)} ${what}${count === 1 ? '' : 's'}`;
}

function numeral(value: number): string {
  return Math.round(value).toLocaleString('en');
}
