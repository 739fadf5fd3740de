/**
 * Headers that name these pages, so that the report of REST usage can exclude them. Browsers set
 * `User-Agent` themselves.
 */
export const clientHeaders = { 'apollographql-client-name': 'shopfront-pages' };
