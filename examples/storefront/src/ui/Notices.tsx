import { useEffect } from 'react';
import { useLocation } from 'react-router';
import { dismiss, notice } from './notices.ts';
import { useStore } from './store.ts';

/** Shows notices, and announces them to screen readers. */
export function Notices() {
  const current = useStore(notice);
  const { pathname } = useLocation();
  const isHere = current !== undefined && (current.page === undefined || current.page === pathname);

  useEffect(() => {
    if (!isHere || current.page === undefined) return undefined;
    return () => dismiss(current);
  }, [current, isHere]);

  return (
    <div className="notices" role="status">
      {isHere && (
        <p className="notice">
          {current.text}
          <button type="button" className="quiet" onClick={() => dismiss(current)}>
            Dismiss
          </button>
        </p>
      )}
    </div>
  );
}
