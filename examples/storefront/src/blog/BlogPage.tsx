import { useQuery } from '@apollo/client/react';
import { Link } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { useViewer } from '../session/viewer.ts';
import { Failure } from '../ui/Failure.tsx';
import { Loading } from '../ui/Loading.tsx';
import { LoadMore } from '../ui/LoadMore.tsx';
import { EntryCard } from './EntryCard.tsx';
import './blog.css';

const BlogDocument = graphql(`
  query Blog($after: String) {
    blog(first: 10, after: $after) {
      edges {
        cursor
        node {
          id
          ...EntryCard
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** Published entries and drafts of the viewer, newest first. */
export function BlogPage() {
  const viewer = useViewer();
  // Shows cached entries at once, then the new entries of other users.
  const { data, error, refetch, fetchMore } = useQuery(BlogDocument, {
    fetchPolicy: 'cache-and-network',
  });
  const entries = data?.blog;

  return (
    <div className="reading">
      <PageHeading title="Blog">
        {viewer?.scopes.includes('blog:write') && (
          <Link className="button primary" to="/blog/new">
            Write
          </Link>
        )}
      </PageHeading>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!entries && !error && <Loading what="the blog" />}
      {entries?.edges.length === 0 && <p>There are no entries yet.</p>}
      <ul className="entries">
        {entries?.edges.map(({ node }) => (
          <li key={node.id}>
            <EntryCard entry={node} />
          </li>
        ))}
      </ul>
      {entries?.pageInfo.hasNextPage && (
        <LoadMore
          onMore={() => fetchMore({ variables: { after: entries.pageInfo.endCursor ?? null } })}
        />
      )}
    </div>
  );
}
