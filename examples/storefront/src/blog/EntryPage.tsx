import { Link, useParams } from 'react-router';
import { NotFoundPage } from '../app/NotFoundPage.tsx';
import { PageFailure } from '../app/PageFailure.tsx';
import { PageHeading } from '../app/PageHeading.tsx';
import { Loading } from '../ui/Loading.tsx';
import { EntryActions } from './EntryActions.tsx';
import { EntryByline } from './EntryByline.tsx';
import { useEntry } from './useEntry.ts';
import './blog.css';

/** One blog entry. */
export function EntryPage() {
  const { id = '' } = useParams();
  const { entry, isOwn, error, refetch } = useEntry(id);

  if (error) return <PageFailure title="Entry" error={error} onRetry={() => void refetch()} />;
  if (entry === undefined) return <Loading what="the entry" />;
  if (!entry) return <NotFoundPage what="entry" />;
  return (
    <article className="reading">
      <Link className="back-link" to="/blog">
        ← Blog
      </Link>
      <PageHeading title={entry.title} />
      <EntryByline entry={entry} />
      <div className="prose">{entry.body}</div>
      {isOwn && <EntryActions id={entry.id} title={entry.title} published={entry.published} />}
    </article>
  );
}
