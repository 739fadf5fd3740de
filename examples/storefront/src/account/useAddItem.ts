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

/** The part of a cached list that a new item changes. */
interface StoredItems {
  edges: { __typename: 'ItemEdge'; cursor: string; node: Reference }[];
  pageInfo: { hasNextPage: boolean };
}

/** Adds an item of the user at once, and removes it if the shop rejects the mutation. */
export function useAddItem(userId: string): (name: string) => Promise<void> {
  const [addItem] = useMutation(AddItemDocument);
  return async (name) => {
    const itemId = name.trim();
    await addItem({
      variables: { itemId },
      optimisticResponse: {
        addItem: {
          __typename: 'Item',
          id: `new ${itemId}`,
          itemId,
          createdAt: new Date().toISOString(),
        },
      },
      update: (cache, { data }) => {
        if (data) append(cache, userId, data.addItem);
      },
    });
  };
}

// The oldest items come first, so a new one is appended, if the end of the list is loaded.
function append(
  cache: ApolloCache,
  userId: string,
  item: { __typename: 'Item'; id: string },
): void {
  cache.modify<{ items: StoredItems }>({
    id: cache.identify({ __typename: 'User', id: userId }) ?? '',
    fields: {
      items: (existing, { toReference }) => {
        const node = toReference(item);
        if (!node || !('edges' in existing) || existing.pageInfo.hasNextPage) return existing;
        return {
          ...existing,
          edges: [...existing.edges, { __typename: 'ItemEdge', cursor: '', node }],
        };
      },
    },
  });
}
