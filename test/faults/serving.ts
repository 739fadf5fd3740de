import assert from 'node:assert/strict';

/** The result of one request. */
interface ProbeResult {
  status: number;
  ms: number;
}

/** Sends one request. Throws if a 503 lacks Retry-After, or if there is no response. */
export async function probe(url: string): Promise<ProbeResult> {
  const begun = performance.now();
  const answer = await fetch(url);
  await answer.arrayBuffer();
  if (answer.status === 503)
    assert.ok(answer.headers.has('Retry-After'), `503 without Retry-After: ${url}`);
  return { status: answer.status, ms: performance.now() - begun };
}

/**
 * Waits until the server is ready and serves. Returns the ms until then. Every response must be 200
 * or 503.
 */
export async function untilServing(url: string): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const [live, ready, page] = await Promise.all(
      ['/livez', '/readyz', '/api/v2/shop/products'].map((path) => probe(url + path)),
    );
    assert.equal(live?.status, 200);
    for (const probed of [ready, page])
      assert.ok(probed?.status === 200 || probed?.status === 503, `answered ${probed?.status}`);
    if (ready?.status === 200 && page?.status === 200) return performance.now() - begun;
  }
}
