import { Link } from 'react-router';
import { PageHeading } from './PageHeading.tsx';

/** The page for unknown addresses and records. */
export function NotFoundPage({ what = 'page' }: { what?: string }) {
  return (
    <>
      <PageHeading title={`There is no such ${what}`} />
      <p>
        It may have been deleted, or the address may be wrong. <Link to="/">See the catalogue</Link>{' '}
        instead.
      </p>
    </>
  );
}
