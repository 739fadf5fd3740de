import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'react-router';

/** The heading of a page, which is its title, too. After a navigation it has the focus, so that reading goes on from there. */
export function PageHeading({ title, children }: { title: string; children?: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // What the browser opened has the key `default`; there the focus is the browser's.
  const isNavigated = useLocation().key !== 'default';
  const wasNavigated = useRef(isNavigated);

  useEffect(() => {
    // The scroll position is restored elsewhere.
    if (wasNavigated.current) heading.current?.focus({ preventScroll: true });
  }, []);

  return (
    <div className="page-heading">
      <title>{`${title} · Shopfront`}</title>
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </div>
  );
}
