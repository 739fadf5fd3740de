import { Failure } from '../ui/Failure.tsx';
import { PageHeading } from './PageHeading.tsx';

/** A page that could not be loaded, with the error and a button to retry. */
export function PageFailure({
  title,
  error,
  onRetry,
}: {
  title: string;
  error: unknown;
  onRetry: () => void;
}) {
  return (
    <>
      <PageHeading title={title} />
      <Failure error={error} onRetry={onRetry} />
    </>
  );
}
