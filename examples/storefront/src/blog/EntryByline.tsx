import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { Instant } from '../ui/Instant.tsx';

const EntryBylineFields = graphql(`
  fragment EntryByline on BlogEntry {
    id
    published
    createdAt
    creator {
      id
      username
      fullName
    }
  }
`);

/** Author, date and draft state of an entry. */
export function EntryByline({ entry }: { entry: FragmentType<typeof EntryBylineFields> }) {
  const { published, createdAt, creator } = readFragment(EntryBylineFields, entry);
  return (
    <p className="dim">
      {!published && <span className="badge">Draft</span>} {creator.fullName ?? creator.username},{' '}
      <Instant at={createdAt} />
    </p>
  );
}
