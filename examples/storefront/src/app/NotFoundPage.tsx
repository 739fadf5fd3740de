import { Link } from 'react-router';
import { PageHeading } from './PageHeading.tsx';

/** What stands where there is nothing. */
export function NotFoundPage({ what = 'page' }: { what?: string }) {
  return (
    <>
      <PageHeading title={`There is no such ${what}`} />
      <p>
        It may have gone, or the address may not be right. <Link to="/">See the catalogue</Link> instead.
      </p>
    </>
  );
}
