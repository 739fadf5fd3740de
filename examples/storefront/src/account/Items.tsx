import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { Field } from '../ui/Field.tsx';
import { Form, textIn } from '../ui/Form.tsx';
import { LoadMore } from '../ui/LoadMore.tsx';
import { ItemRow } from './ItemRow.tsx';
import { useAddItem } from './useAddItem.ts';

const ItemsFields = graphql(`
  fragment Items on User {
    id
    items(first: 50, after: $itemsAfter) {
      edges {
        cursor
        node {
          id
          ...ItemRow
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

interface ItemsProps {
  user: FragmentType<typeof ItemsFields>;
  onMore: (after: string | null) => Promise<unknown>;
}

/** Items of the viewer, oldest first. */
export function Items({ user, onMore }: ItemsProps) {
  const { id, items } = readFragment(ItemsFields, user);
  const addItem = useAddItem(id);

  const add = async (values: FormData, form: HTMLFormElement) => {
    await addItem(textIn(values, 'itemId'));
    form.reset();
  };

  return (
    <section className="panel" aria-labelledby="items">
      <h2 id="items">Items</h2>
      {items.edges.length === 0 && <p>You have no items yet.</p>}
      <ul className="rows">
        {items.edges.map(({ node }) => (
          <ItemRow key={node.id} item={node} />
        ))}
      </ul>
      {items.pageInfo.hasNextPage && (
        <LoadMore onMore={() => onMore(items.pageInfo.endCursor ?? null)} />
      )}
      <Form className="form-in-line" submit="Add" action={add}>
        <Field name="itemId" label="New item" autoComplete="off" />
      </Form>
    </section>
  );
}
