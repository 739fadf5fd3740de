import { problemOf } from '../apollo/problem.ts';

/** Says why something is not there, and offers to try again. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <p>{problemOf(error).message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
