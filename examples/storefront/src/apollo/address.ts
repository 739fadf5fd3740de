/** The address of the API, from `<meta name="shop-api">`. */
export function apiAddress(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="shop-api"]');
  if (!meta?.content) throw new Error('The page has no shop-api address');
  return meta.content;
}
