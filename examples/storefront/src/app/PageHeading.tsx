import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'react-router';

/** Heading and title of a page. Takes the focus after a navigation, for screen readers. */
export function PageHeading({ title, children }: { title: string; children?: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The key of the first page is `default`; there the browser sets the focus.
  const isNavigated = useLocation().key !== 'default';
  const wasNavigated = useRef(isNavigated);

  useEffect(() => {
    // The router restores the scroll position.
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
