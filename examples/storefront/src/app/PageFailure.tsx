import { Failure } from '../ui/Failure.tsx';
import { PageHeading } from './PageHeading.tsx';

/** A page that could not be loaded: why, and another try. */
export function PageFailure({ title, error, onRetry }: { title: string; error: unknown; onRetry: () => void }) {
  return (
    <>
      <PageHeading title={title} />
      <Failure error={error} onRetry={onRetry} />
    </>
  );
}
