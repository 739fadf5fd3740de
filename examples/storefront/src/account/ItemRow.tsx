import { useMutation } from '@apollo/client/react';
import { problemOf } from '../apollo/problem.ts';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { Instant } from '../ui/Instant.tsx';
import { showNotice } from '../ui/notices.ts';

const ItemRowFields = graphql(`
  fragment ItemRow on Item {
    id
    itemId
    createdAt
  }
`);

const RemoveItemDocument = graphql(`
  mutation RemoveItem($itemId: String!) {
    removeItem(itemId: $itemId) {
      __typename
      id
    }
  }
`);

/** An item of the user, with a button to remove it. */
export function ItemRow({ item }: { item: FragmentType<typeof ItemRowFields> }) {
  const { id, itemId, createdAt } = readFragment(ItemRowFields, item);
  const [removeItem] = useMutation(RemoveItemDocument, {
    variables: { itemId },
    // Removed at once, and restored if the shop rejects the mutation.
    optimisticResponse: { removeItem: { __typename: 'Item', id } },
    update: (cache, { data }) => {
      if (data) cache.evict({ id: cache.identify(data.removeItem) ?? '' });
    },
    onError: (error) =>
      showNotice(`${itemId} is still there. ${problemOf(error).message}`, '/account'),
  });

  return (
    <li>
      <p>
        <strong>{itemId}</strong>
        <br />
        <span className="dim">
          since <Instant at={createdAt} />
        </span>
      </p>
      <button
        type="button"
        className="quiet"
        aria-label={`Remove ${itemId}`}
        onClick={() => void removeItem()}
      >
        Remove
      </button>
    </li>
  );
}
