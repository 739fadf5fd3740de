import { visit, type DocumentNode, type Location } from 'graphql';
import { LRUCache } from 'lru-cache';

/** Approximate number of bytes of a node of a parsed document. */
const NODE_BYTES = 300;
/** Maximum number of bytes of cached documents, and of compiled operations. */
export const MAX_DOCUMENTS_BYTES = 16_000_000;
/**
 * Maximum number of bytes of a cached document. Larger ones are parsed for each request: they are
 * rare, or sent to fill the memory.
 */
const MAX_DOCUMENT_BYTES = 200_000;

/**
 * Cache of parsed and validated documents, bounded by their memory. Apollo Server's own store does
 * not count their text.
 */
export class Documents {
  private readonly cache = new LRUCache<string, DocumentNode>({
    maxSize: MAX_DOCUMENTS_BYTES,
    maxEntrySize: MAX_DOCUMENT_BYTES,
    sizeCalculation: sizeOf,
  });

  async get(key: string): Promise<DocumentNode | undefined> {
    return this.cache.get(key);
  }

  async set(key: string, document: DocumentNode): Promise<void> {
    withoutTokens(document);
    this.cache.set(key, document);
  }

  async delete(key: string): Promise<boolean> {
    return this.cache.delete(key);
  }
}

/** Returns the approximate number of bytes of a parsed document: its text and its nodes. */
export function sizeOf(document: DocumentNode): number {
  let nodes = 0;
  visit(document, { enter: () => void nodes++ });
  return (document.loc?.source.body.length ?? 0) + nodes * NODE_BYTES;
}

/** Removes the linked tokens, which are unused after parsing and much larger than the text. */
export function withoutTokens(document: DocumentNode): void {
  visit(document, { enter: ({ loc }) => loc && removeTokens(loc) });
}

function removeTokens(location: Location): void {
  Object.assign(location, { startToken: undefined, endToken: undefined });
}
