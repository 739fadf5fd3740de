import { type ApolloCache, InMemoryCache } from '@apollo/client';
import { relayStylePagination } from '@apollo/client/utilities';

const PUBLIC_FIELDS = new Set(['__typename', 'product', 'products']);

/** Creates a cache that merges the pages of each list. */
export function createCache(): InMemoryCache {
  return new InMemoryCache({
    possibleTypes: { Node: ['BlogEntry', 'Item', 'Product', 'Session', 'User'] },
    typePolicies: {
      Query: {
        fields: {
          products: relayStylePagination(['filter', 'orderBy']),
          blog: relayStylePagination(),
        },
      },
      User: {
        fields: {
          items: relayStylePagination(),
          sessions: relayStylePagination(),
        },
      },
    },
  });
}

/** Removes everything but the catalogue, because only the signed-in user may see it. */
export function forgetCaller(cache: ApolloCache): void {
  cache.modify({
    id: 'ROOT_QUERY',
    fields: (value: unknown, { fieldName, DELETE }) =>
      PUBLIC_FIELDS.has(fieldName) ? value : DELETE,
  });
  cache.gc();
}
