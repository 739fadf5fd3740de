import { Link } from 'react-router';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { EntryByline } from './EntryByline.tsx';

const EntryCardFields = graphql(`
  fragment EntryCard on BlogEntry {
    id
    title
    body
    ...EntryByline
  }
`);

const EXCERPT = 240;

/** The start of an entry, in a list. */
export function EntryCard({ entry }: { entry: FragmentType<typeof EntryCardFields> }) {
  const fields = readFragment(EntryCardFields, entry);
  const { id, title, body } = fields;
  return (
    <article className="entry-card">
      <h2>
        <Link to={`/blog/${id}`}>{title}</Link>
      </h2>
      <EntryByline entry={fields} />
      <p>{body.length > EXCERPT ? `${body.slice(0, EXCERPT).trimEnd()}…` : body}</p>
    </article>
  );
}
