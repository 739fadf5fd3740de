/**
 * Loads a server with clients that send the next request after each response. Returns a function
 * that stops them.
 */
export function keepBusy(url: string): () => Promise<void> {
  const pages = Array.from(
    { length: 9 },
    (_, index) => `p${index}: products(first: 100) { nodes { pk name createdAt } }`,
  );
  const body = JSON.stringify({ query: `{ ${pages.join(' ')} }` });
  const headers = { 'Content-Type': 'application/json' };
  const end = new AbortController();
  const client = async () => {
    while (!end.signal.aborted)
      await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).text();
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  return async () => {
    end.abort();
    await clients;
  };
}
