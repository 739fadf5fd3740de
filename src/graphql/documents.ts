import { visit, type DocumentNode, type Location } from 'graphql';
import { LRUCache } from 'lru-cache';

/** What a node of a parsed document takes, in bytes, about. */
const NODE_BYTES = 300;
/** How much is kept, of documents and of what is made of them, in bytes. */
export const MAX_DOCUMENTS_BYTES = 16_000_000;
/** Larger documents are parsed each time: they are few, or they are sent to fill our memory. */
const MAX_DOCUMENT_BYTES = 200_000;

/** Parsed and validated documents, by the size that they really have: Apollo Server's own store measures them without their text. */
export class Documents {
  private readonly known = new LRUCache<string, DocumentNode>({
    maxSize: MAX_DOCUMENTS_BYTES,
    maxEntrySize: MAX_DOCUMENT_BYTES,
    sizeCalculation: sizeOf,
  });

  async get(key: string): Promise<DocumentNode | undefined> {
    return this.known.get(key);
  }

  async set(key: string, document: DocumentNode): Promise<void> {
    withoutTokens(document);
    this.known.set(key, document);
  }

  async delete(key: string): Promise<boolean> {
    return this.known.delete(key);
  }
}

/** What a parsed document takes of memory, in bytes, about: its text, and its nodes. */
export function sizeOf(document: DocumentNode): number {
  let nodes = 0;
  visit(document, { enter: () => void nodes++ });
  return (document.loc?.source.body.length ?? 0) + nodes * NODE_BYTES;
}

/** Takes out what the parser links: every token of the text, comments too, which are many times the text. Nobody asks for them once it is parsed. */
export function withoutTokens(document: DocumentNode): void {
  visit(document, { enter: ({ loc }) => loc && cut(loc) });
}

function cut(location: Location): void {
  Object.assign(location, { startToken: undefined, endToken: undefined });
}
