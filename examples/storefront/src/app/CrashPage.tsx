import { HOME } from '../settings.ts';

/** Replaces a page after an error in its code, or if its code could not be loaded. */
export function CrashPage() {
  return (
    <main className="page" id="main">
      <title>Something went wrong · Shopfront</title>
      <h1>Something went wrong</h1>
      <p role="alert">This page could not be shown. The other pages still work.</p>
      <div className="actions">
        <button type="button" className="primary" onClick={() => window.location.reload()}>
          Try again
        </button>
        <a href={HOME}>See the catalogue</a>
      </div>
    </main>
  );
}
