/** Where the API is: what the page says in `<meta name="shop-api">`. */
export function apiAddress(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="shop-api"]');
  if (!meta?.content) throw new Error('The page names no API');
  return meta.content;
}
