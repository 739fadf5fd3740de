import { type ApolloCache, type Reference } from '@apollo/client';
import { useMutation } from '@apollo/client/react';
import { graphql } from '../gql/index.ts';

const AddItemDocument = graphql(`
  mutation AddItem($itemId: String!) {
    addItem(itemId: $itemId) {
      __typename
      id
      itemId
      createdAt
    }
  }
`);

/** What of a list in the cache a new item changes. */
interface StoredItems {
  edges: { __typename: 'ItemEdge'; cursor: string; node: Reference }[];
  pageInfo: { hasNextPage: boolean };
}

/** Adds an item to the user's own; it is in the list at once, and out of it again where the shop refuses it. */
export function useAddItem(userId: string): (name: string) => Promise<void> {
  const [addItem] = useMutation(AddItemDocument);
  return async (name) => {
    const itemId = name.trim();
    await addItem({
      variables: { itemId },
      optimisticResponse: { addItem: { __typename: 'Item', id: `new ${itemId}`, itemId, createdAt: new Date().toISOString() } },
      update: (cache, { data }) => {
        if (data) append(cache, userId, data.addItem);
      },
    });
  };
}

// The oldest come first, so that a new one belongs at the end, once that is loaded.
function append(cache: ApolloCache, userId: string, item: { __typename: 'Item'; id: string }): void {
  cache.modify<{ items: StoredItems }>({
    id: cache.identify({ __typename: 'User', id: userId }) ?? '',
    fields: {
      items: (existing, { toReference }) => {
        const node = toReference(item);
        if (!node || !('edges' in existing) || existing.pageInfo.hasNextPage) return existing;
        return { ...existing, edges: [...existing.edges, { __typename: 'ItemEdge', cursor: '', node }] };
      },
    },
  });
}
