/** What stands where a page broke: an error in the code, or a part of the app that did not load. */
export function CrashPage() {
  return (
    <main className="page" id="main">
      <title>Something broke · Shopfront</title>
      <h1>Something broke</h1>
      <p role="alert">This page could not be shown. Your work elsewhere in the shop is safe.</p>
      <div className="actions">
        <button type="button" className="primary" onClick={() => window.location.reload()}>
          Try again
        </button>
        <a href="/">See the catalogue</a>
      </div>
    </main>
  );
}
