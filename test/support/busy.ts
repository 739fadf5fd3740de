/** Keeps a server busy by clients that send their next request as soon as they have a response. Returns what ends them. */
export function keepBusy(url: string): () => Promise<void> {
  const pages = Array.from({ length: 9 }, (_, index) => `p${index}: products(first: 100) { nodes { pk name createdAt } }`);
  const body = JSON.stringify({ query: `{ ${pages.join(' ')} }` });
  const headers = { 'Content-Type': 'application/json' };
  const end = new AbortController();
  const client = async () => {
    while (!end.signal.aborted) await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).text();
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  return async () => {
    end.abort();
    await clients;
  };
}
