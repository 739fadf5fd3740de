import { type ApolloCache, InMemoryCache } from '@apollo/client';
import { relayStylePagination } from '@apollo/client/utilities';

const PUBLIC_FIELDS = new Set(['__typename', 'product', 'products']);

/** The cache: lists by cursor grow page by page. */
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

/** Takes out what only the caller who was signed in may know; the catalogue stays. */
export function forgetCaller(cache: ApolloCache): void {
  cache.modify({
    id: 'ROOT_QUERY',
    fields: (value: unknown, { fieldName, DELETE }) => (PUBLIC_FIELDS.has(fieldName) ? value : DELETE),
  });
  cache.gc();
}
