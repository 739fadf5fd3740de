import { useCallback, useEffect, useRef, useState } from 'react';
import { Failure } from './Failure.tsx';

/** Loads more when the end of a list becomes visible, or by button. */
export function LoadMore({ onMore }: { onMore: () => Promise<unknown> }) {
  const end = useRef<HTMLDivElement>(null);
  const { load, isLoading, error } = useLoading(onMore);

  useEffect(() => {
    // Checks visibility again after each load. After a failure, the user has to retry.
    if (!end.current || isLoading || error !== undefined) return undefined;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting) load();
      },
      { rootMargin: '0px 0px 600px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [isLoading, error, load]);

  return (
    <div className="load-more" ref={end}>
      {error === undefined ? (
        <button type="button" aria-disabled={isLoading} onClick={load}>
          {isLoading ? 'Loading…' : 'Load more'}
        </button>
      ) : (
        <Failure error={error} onRetry={load} />
      )}
    </div>
  );
}

function useLoading(onMore: () => Promise<unknown>) {
  const [isLoading, setIsLoading] = useState(false);
  const [error, setError] = useState<unknown>();
  const latest = useRef(onMore);
  useEffect(() => {
    latest.current = onMore;
  }, [onMore]);

  const load = useCallback(() => {
    setIsLoading(true);
    setError(undefined);
    latest.current().then(
      () => setIsLoading(false),
      (reason: unknown) => {
        setIsLoading(false);
        setError(reason);
      },
    );
  }, []);

  return { load, isLoading, error };
}
