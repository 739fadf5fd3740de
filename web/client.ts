/**
 * The headers that name these pages to the server, so that its report of REST usage can leave them out. Browsers set `User-Agent`
 * themselves.
 */
export const clientHeaders = { 'apollographql-client-name': 'shopfront-pages' };
