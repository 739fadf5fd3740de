import type { ApolloClient } from '@apollo/client';
import { print } from 'graphql';
import type { ProductChangedSubscription } from '../gql/graphql.ts';
import { graphql } from '../gql/index.ts';
import { API } from '../settings.ts';

const ProductChangedDocument = graphql(`
  subscription ProductChanged($after: String) {
    productChanged(kinds: [CHANGED, BULK], after: $after) {
      cursor
      product {
        __typename
        id
        name
        price
        barcode
        updatedAt
      }
    }
  }
`);

/** Queries whose data the changes affect. */
const QUERIES = new Set(['Catalogue', 'Product']);

/** Context of these queries: a reload sends a request even if an earlier one has no response yet. */
export const RELOADED = { queryDeduplication: false };

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;

interface Response {
  data?: ProductChangedSubscription | null;
}

/**
 * Keeps the cached products current while the page is visible, by an event stream. A lost stream is
 * opened again with backoff, and continues after the last change. Without a cursor, changes before
 * the stream are unknown, so the products are loaded again.
 */
export function watchProducts(client: ApolloClient): void {
  let stream: EventSource | undefined;
  let cursor: string | undefined;
  let openedAt = Infinity;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const open = () => {
    close();
    stream = new EventSource(streamAddress(cursor));
    stream.addEventListener('open', () => {
      openedAt = Date.now();
      if (cursor === undefined) reload(client);
    });
    stream.addEventListener('next', ({ data }: MessageEvent<string>) => {
      const change = (JSON.parse(data) as Response).data?.productChanged;
      // After an error, such as an expired cursor, the server ends the stream.
      cursor = change?.cursor;
      if (change?.product) updateProduct(client, change.product);
      else if (change) reload(client);
    });
    stream.addEventListener('complete', retry);
    stream.addEventListener('error', retry);
  };
  const close = () => {
    clearTimeout(timer);
    stream?.close();
  };
  const retry = () => {
    close();
    // A stream that ends at once counts as a failure.
    if (Date.now() - openedAt > MAX_WAIT_MS) failures = 0;
    openedAt = Infinity;
    const wait = Math.min(FIRST_WAIT_MS * 2 ** failures++, MAX_WAIT_MS);
    // Random, so that the clients of a restarted server do not return all at once.
    timer = setTimeout(open, wait * (0.5 + Math.random() / 2));
  };
  const followVisibility = () => (document.hidden ? close() : open());

  // Browsers open few connections to a host, so hidden pages have no stream.
  document.addEventListener('visibilitychange', followVisibility);
  window.addEventListener('online', followVisibility);
  followVisibility();
}

function streamAddress(after: string | undefined): string {
  const query = print(ProductChangedDocument);
  const variables = JSON.stringify({ after });
  return `${API}?${new URLSearchParams({ query, variables }).toString()}`;
}

function updateProduct({ cache }: ApolloClient, product: object): void {
  const values = new Map(Object.entries(product));
  // Changes only fields that are in the cache.
  cache.modify({
    id: cache.identify({ ...product }) ?? '',
    fields: (value: unknown, { fieldName }) => values.get(fieldName) ?? value,
  });
}

function reload(client: ApolloClient): void {
  for (const query of client.getObservableQueries()) {
    const isAffected = QUERIES.has(query.queryName ?? '');
    // A failed query has a button to retry on its page, which also shows later failures.
    if (isAffected && !query.getCurrentResult().error) query.refetch().catch(() => undefined);
  }
}
