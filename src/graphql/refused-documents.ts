import type { IncomingMessage } from 'node:http';
import type { ApolloServerPlugin, HTTPGraphQLResponse } from '@apollo/server';
import { LRUCache } from 'lru-cache';
import type { Context } from '../request/context.ts';
import type { Exchange } from '../http/exchange.ts';
import { seenOf } from '../http/dependencies.ts';
import type { Seen } from '../telemetry/request-record.ts';

/** Maximum number of characters of all refused documents and their refusals in one memory, and of one document with its refusal. */
const MAX_KEPT = 2_000_000;
const MAX_ENTRY = 100_000;

/** The answer to a document that is invalid, whoever sends it, and the codes of its errors. */
interface RefusedAnswer {
  answer: HTTPGraphQLResponse;
  codes: readonly string[];
}

/** A bounded memory of refusals by the text of the refused document. `sizeOf` returns the number of characters of a refusal. */
export function refusalsByText<Refusal extends object>(sizeOf: (refusal: Refusal) => number): LRUCache<string, Refusal> {
  return new LRUCache({
    maxSize: MAX_KEPT,
    maxEntrySize: MAX_ENTRY,
    sizeCalculation: (refusal, text) => text.length + sizeOf(refusal),
  });
}

/** Remembers documents that cannot be parsed or are invalid, so that a client that repeats one does not have it validated again. */
export class RefusedDocuments {
  private readonly known = refusalsByText(({ answer: { body } }: RefusedAnswer) =>
    body.kind === 'complete' ? body.string.length : MAX_ENTRY,
  );
  private readonly refused = new WeakSet<Seen>();

  /** Learns which documents Apollo Server refuses before anything else of the request is looked at. */
  readonly plugin: ApolloServerPlugin<Context> = {
    requestDidStart: async ({ contextValue }) => {
      const seen = seenOf(contextValue);
      const note = async (errors?: unknown) => {
        if (seen && errors !== undefined) this.refused.add(seen);
      };
      return { parsingDidStart: async () => note, validationDidStart: async () => note };
    },
  };

  /** Returns what was answered to this document before. */
  find(req: IncomingMessage, document: unknown): RefusedAnswer | undefined {
    return typeof document === 'string' ? this.known.get(keyOf(req, document)) : undefined;
  }

  /** Keeps the answer, if it refuses the document. */
  keep({ req, seen }: Exchange, document: unknown, answer: HTTPGraphQLResponse): void {
    if (typeof document !== 'string' || !this.refused.has(seen)) return;
    this.known.set(keyOf(req, document), { answer, codes: seen.errors ?? [] });
  }
}

// The media type and the status depend on what the client accepts.
function keyOf({ headers: { accept = '' } }: IncomingMessage, document: string): string {
  return `${accept}\n${document}`;
}
