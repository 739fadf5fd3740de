import assert from 'node:assert/strict';

/** What came of one question. */
interface Probed {
  status: number;
  ms: number;
}

/** Asks once. Throws where a 503 does not say when to ask again, and where there is no answer. */
export async function probe(url: string): Promise<Probed> {
  const begun = performance.now();
  const answer = await fetch(url);
  await answer.arrayBuffer();
  if (answer.status === 503) assert.ok(answer.headers.has('Retry-After'), `503 without Retry-After of ${url}`);
  return { status: answer.status, ms: performance.now() - begun };
}

/** Resolves when the server can serve again, with how long that took in ms. Every answer until then is good or 503. */
export async function untilServing(url: string): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const [live, ready, page] = await Promise.all(['/livez', '/readyz', '/api/v2/shop/products'].map((path) => probe(url + path)));
    assert.equal(live?.status, 200);
    for (const probed of [ready, page]) assert.ok(probed?.status === 200 || probed?.status === 503, `answered ${probed?.status}`);
    if (ready?.status === 200 && page?.status === 200) return performance.now() - begun;
  }
}
