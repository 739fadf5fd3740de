import type { IncomingMessage } from 'node:http';
import type { ApolloServerPlugin, HTTPGraphQLResponse } from '@apollo/server';
import { LRUCache } from 'lru-cache';
import type { Context } from '../request/context.ts';
import type { Exchange } from '../http/exchange.ts';
import { recordOf } from '../http/dependencies.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';

/** Maximum number of characters of documents and errors in a cache, and in one entry. */
const MAX_SIZE = 2_000_000;
const MAX_ENTRY_SIZE = 100_000;

/** Response to an invalid document, for every client, and the codes of its errors. */
interface RefusedResponse {
  response: HTTPGraphQLResponse;
  codes: readonly string[];
}

/** Creates a bounded cache of refusals by document text. `sizeOf` counts a refusal's characters. */
export function createRefusalCache<Refusal extends object>(
  sizeOf: (refusal: Refusal) => number,
): LRUCache<string, Refusal> {
  return new LRUCache({
    maxSize: MAX_SIZE,
    maxEntrySize: MAX_ENTRY_SIZE,
    sizeCalculation: (refusal, text) => text.length + sizeOf(refusal),
  });
}

/** Caches responses to invalid documents, so that a repeated document is not validated again. */
export class RefusedDocuments {
  private readonly cache = createRefusalCache(({ response: { body } }: RefusedResponse) =>
    body.kind === 'complete' ? body.string.length : MAX_ENTRY_SIZE,
  );
  private readonly refused = new WeakSet<RequestRecord>();

  /** Records which requests Apollo Server rejects by parsing or validation. */
  readonly plugin: ApolloServerPlugin<Context> = {
    requestDidStart: async ({ contextValue }) => {
      const record = recordOf(contextValue);
      const markRefused = async (errors?: unknown) => {
        if (record && errors !== undefined) this.refused.add(record);
      };
      return {
        parsingDidStart: async () => markRefused,
        validationDidStart: async () => markRefused,
      };
    },
  };

  /** Returns the stored response to this document. */
  find(req: IncomingMessage, document: unknown): RefusedResponse | undefined {
    return typeof document === 'string' ? this.cache.get(keyOf(req, document)) : undefined;
  }

  /** Stores the response if it rejects the document. */
  store({ req, record }: Exchange, document: unknown, response: HTTPGraphQLResponse): void {
    if (typeof document !== 'string' || !this.refused.has(record)) return;
    this.cache.set(keyOf(req, document), { response, codes: record.errors ?? [] });
  }
}

// The media type and the status depend on `Accept`.
function keyOf({ headers: { accept = '' } }: IncomingMessage, document: string): string {
  return `${accept}\n${document}`;
}
