import type { DocumentNode } from 'graphql';
import { unavailable } from '../http-error.ts';
import { sizeOf, withoutTokens } from './documents.ts';

/** How much the documents and variables of all subscriptions may take together, in bytes. */
const MAX_BYTES = 64_000_000;

interface Held {
  document: DocumentNode;
  size: number;
  users: number;
}

/** The documents of subscriptions, each once for all who use it and for as long as somebody does: nobody fills our memory by listening. */
export class HeldDocuments {
  private readonly held = new Map<string, Held>();
  private bytes = 0;

  /** The document of this text, parsed and found to be good before, where it is in use. */
  get(text: string): DocumentNode | undefined {
    return this.held.get(text)?.document;
  }

  /** Holds the document of this text, and so many bytes of this user's own, until what this returns is called. Throws UNAVAILABLE where there is no room. */
  hold(text: string, document: DocumentNode, beside: number): () => void {
    const before = this.held.get(text);
    const own = before ?? { document, size: sizeOf(document), users: 0 };
    const added = beside + (before ? 0 : own.size);
    if (this.bytes + added > MAX_BYTES) throw unavailable();
    if (!before) withoutTokens(document);
    this.held.set(text, own);
    this.bytes += added;
    own.users++;
    return () => {
      this.bytes -= beside;
      if (--own.users > 0) return;
      this.held.delete(text);
      this.bytes -= own.size;
    };
  }
}
