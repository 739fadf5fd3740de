import { hash } from 'node:crypto';
import { Kind, OperationTypeNode, parse } from 'graphql';
import { z } from 'zod';
import { ConfigError, type Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { parseJson } from '../http/body.ts';
import { HttpError } from '../http/http-error.ts';
import { badManifest, firstProblem, readManifest } from './manifest.ts';

const UNTRUSTED =
  'This document is not trusted. Add it to the manifest of the server, or send a trusted document by its text or id';
const REFERENCE_PARAMETERS = ['query', 'documentId', 'extensions'] as const;

/** A request, with the members that identify its document. */
const requestSchema = z.looseObject({
  query: z.string().nullish(),
  documentId: z.string().nullish(),
  extensions: z
    .looseObject({
      persistedQuery: z.object({ version: z.literal(1), sha256Hash: z.string() }).nullish(),
    })
    .nullish(),
});

/** Trusted documents. Requests reference them by id, or send their exact text. */
export class TrustedDocuments {
  /** Texts by the ids of the manifests and by hash. */
  private readonly texts = new Map<string, string>();
  /** Names of their operations. */
  readonly operationNames = new Set<string>();

  /** Throws BAD_USER_INPUT for unusable manifests. */
  constructor(private readonly config: Config) {
    for (const file of config.trustedDocuments)
      for (const { id, text, operationNames } of readManifest(file)) {
        for (const key of [id, sha256(text), `sha256:${sha256(text)}`]) {
          if ((this.texts.get(key) ?? text) !== text)
            throw badManifest(`${file}: id ${key} has two different documents`);
          this.texts.set(key, text);
        }
        for (const name of operationNames) this.operationNames.add(name);
      }
  }

  /** Replaces a document id in a request body by the text. Throws if the document may not run. */
  readBody(body: unknown): { query: string | undefined; extensions: object } {
    const { data, error } = requestSchema.safeParse(body);
    if (error) throw new HttpError(400, firstProblem(error));
    const { query, documentId, extensions, ...rest } = data;
    const { persistedQuery, ...otherExtensions } = extensions ?? {};
    return {
      ...rest,
      query: this.textFor(query, documentId, persistedQuery?.sha256Hash),
      extensions: otherExtensions,
    };
  }

  /** Does the same as `readBody` for a query string. */
  readSearch(search: string): string {
    const params = new URLSearchParams(search);
    const repeated = REFERENCE_PARAMETERS.find((name) => params.getAll(name).length > 1);
    if (repeated) throw new HttpError(400, `The query string has ${repeated} more than once`);
    const [query, documentId, json] = REFERENCE_PARAMETERS.map((name) => params.get(name));
    const read = this.readBody({ query, documentId, extensions: json && parseJson(json) });
    params.delete('documentId');
    params.set('extensions', JSON.stringify(read.extensions));
    if (read.query !== undefined) params.set('query', read.query);
    return `?${params.toString()}`;
  }

  /**
   * Returns the text to run: the text of the id, or the query. Beside a text, an empty id counts as
   * absent, as does an empty text. Throws if the document may not run.
   */
  private textFor(
    query: string | null | undefined,
    documentId: string | null | undefined,
    persistedHash: string | undefined,
  ): string | undefined {
    if (documentId && (query || persistedHash !== undefined))
      throw new HttpError(400, 'documentId cannot be combined with query or persistedQuery');
    if (query) {
      const ownHash = sha256(query);
      if (this.texts.get(persistedHash ?? ownHash) === query) return query;
      if (persistedHash !== undefined && persistedHash !== ownHash)
        throw new HttpError(400, 'The hash of persistedQuery does not match the query');
      if (this.isExplorerQuery(query)) return query;
      throw new DomainError('DOCUMENT_NOT_TRUSTED', UNTRUSTED);
    }
    const id = documentId ?? persistedHash;
    const text = id === undefined ? undefined : this.texts.get(id);
    // Requests without a document are rejected later.
    if (id === undefined || text !== undefined) return text;
    throw new DomainError(
      'PERSISTED_QUERY_NOT_FOUND',
      // Clients of automatic persisted queries recognize this message and send the text.
      documentId == null
        ? 'PersistedQueryNotFound'
        : 'Unknown document id: it is not in the manifest of the server',
    );
  }

  // The explorer's introspection query changes with its version, so it is in no manifest.
  private isExplorerQuery(text: string): boolean {
    const { graphqlExplorer, graphqlMaxTokens: maxTokens } = this.config;
    if (!graphqlExplorer) return false;
    try {
      return parse(text, { maxTokens, noLocation: true }).definitions.every(
        (definition) =>
          definition.kind !== Kind.OPERATION_DEFINITION ||
          (definition.operation === OperationTypeNode.QUERY &&
            definition.selectionSet.selections.every(
              (part) => part.kind === Kind.FIELD && part.name.value.startsWith('__'),
            )),
      );
    } catch {
      return false;
    }
  }
}

/** Returns the configured trusted documents, if any. Throws ConfigError for unusable manifests. */
export function trustedDocuments(config: Config): TrustedDocuments | undefined {
  if (config.trustedDocumentsMode === 'off') return undefined;
  try {
    return new TrustedDocuments(config);
  } catch (error) {
    throw error instanceof DomainError
      ? new ConfigError([`TRUSTED_DOCUMENTS: ${error.message}`])
      : error;
  }
}

function sha256(text: string): string {
  return hash('sha256', text);
}
