import { createHash } from 'node:crypto';
import {
  getOperationAST,
  Kind,
  OperationTypeNode,
  parse,
  type DocumentNode,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { ConfigError, type Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { HttpError } from '../http/http-error.ts';
import { ManifestError, readManifest } from './manifest.ts';
import { normalizeDocument } from './document-tokens.ts';

/** Maximum number of cached other spellings of trusted documents, and of their characters. */
const SPELLING_CACHE = { max: 10_000, maxSize: 4_000_000 };
/** Maximum number of untrusted documents that are remembered as logged. */
const MAX_LOGGED = 1_000;
/** Maximum number of logged characters of an operation name, which clients choose. */
const MAX_NAME_LENGTH = 255;

const UNTRUSTED =
  'This document is not trusted. Add it to the manifest of the server, or send a trusted document by its text or id';

/** The parts of a request that identify its document. */
interface DocumentReference {
  query: unknown;
  documentId: unknown;
  extensions: unknown;
  operationName: unknown;
}

/**
 * Trusted documents. Requests may reference them by id. Other documents are logged or rejected,
 * depending on the configuration.
 */
export class TrustedDocuments {
  private readonly texts = new Map<string, string>();
  /** Texts of the documents. */
  private readonly exactTexts = new Set<string>();
  private readonly normalized = new Set<string>();
  /** Names of their operations. */
  readonly operationNames = new Set<string>();
  private readonly spellings = new LRUCache<string, true>({
    ...SPELLING_CACHE,
    sizeCalculation: (_, text) => text.length,
  });
  private readonly logged = new LRUCache<string, true>({ max: MAX_LOGGED });

  constructor(private readonly config: Config) {
    for (const file of config.trustedDocuments) {
      for (const { id, text } of readManifest(file)) {
        const hash = sha256(text);
        for (const name of [id, hash, `sha256:${hash}`]) this.add(file, name, text);
        this.exactTexts.add(text);
        for (const name of namesIn(text)) this.operationNames.add(name);
        const tokens = normalizeDocument(text);
        if (tokens !== undefined) this.normalized.add(tokens);
      }
    }
  }

  /** Replaces a document id in a request body by the text. Throws if the document may not run. */
  readBody(ctx: Context, body: unknown): unknown {
    // Other bodies are rejected later.
    if (!isRecord(body)) return body;
    const { query, documentId, extensions, ...rest } = body;
    const text = this.textFor(ctx, {
      query,
      documentId,
      extensions,
      operationName: rest['operationName'],
    });
    return { ...rest, ...(text !== undefined && { query: text }), ...withoutId(extensions) };
  }

  /** Does the same as `readBody` for a query string. */
  readSearch(ctx: Context, search: string): string {
    const params = new URLSearchParams(search);
    const query = single(params, 'query');
    const documentId = single(params, 'documentId');
    const extensions = jsonOf(single(params, 'extensions'));
    const text = this.textFor(ctx, {
      query,
      documentId,
      extensions,
      operationName: single(params, 'operationName'),
    });
    if (documentId === undefined && hashIn(extensions) === undefined) return search;
    const { extensions: rest } = withoutId(extensions);
    for (const name of ['documentId', 'extensions']) params.delete(name);
    if (rest !== undefined) params.set('extensions', JSON.stringify(rest));
    params.set('query', String(text));
    return `?${params.toString()}`;
  }

  private add(file: string, id: string, text: string): void {
    const existing = this.texts.get(id);
    if (existing !== undefined && existing !== text)
      throw new ManifestError(`${file}: id ${id} has two different documents`);
    this.texts.set(id, text);
  }

  /** Returns the text to run: the text of the id, or the sent query. Throws if it may not run. */
  private textFor(ctx: Context, reference: DocumentReference): unknown {
    const { query } = reference;
    const hash = hashIn(reference.extensions);
    const isWithoutText = query == null || query === '';
    // Beside the other, an empty text or id counts as absent.
    const documentId =
      reference.documentId === '' && !isWithoutText ? undefined : reference.documentId;
    if (documentId != null) {
      if (!isWithoutText || hash !== undefined)
        throw new HttpError(400, 'documentId cannot be combined with query or persistedQuery');
      if (typeof documentId !== 'string') throw new HttpError(400, 'documentId must be a string');
      return (
        this.texts.get(documentId) ??
        rejectId('Unknown document id: it is not in the manifest of the server')
      );
    }
    // Clients of automatic persisted queries recognize this message and send the text.
    if (hash !== undefined && isWithoutText)
      return this.texts.get(hash) ?? rejectId('PersistedQueryNotFound');
    if (typeof query !== 'string') return query;
    if (hash !== undefined && this.texts.get(hash) !== query && sha256(query) !== hash) {
      throw new HttpError(400, 'The hash of persistedQuery does not match the query');
    }
    if (this.isTrusted(query)) return query;
    if (this.config.trustedDocumentsMode === 'enforce')
      throw new DomainError('DOCUMENT_NOT_TRUSTED', UNTRUSTED);
    this.log(ctx, query, reference.operationName);
    return query;
  }

  private isTrusted(text: string): boolean {
    if (this.exactTexts.has(text) || this.spellings.has(text)) return true;
    if (!this.isSpellingOfTrusted(text) && !this.isExplorerQuery(text)) return false;
    this.spellings.set(text, true);
    return true;
  }

  private isSpellingOfTrusted(text: string): boolean {
    try {
      const tokens = normalizeDocument(text, this.config.graphqlMaxTokens);
      return tokens !== undefined && this.normalized.has(tokens);
    } catch {
      return false;
    }
  }

  // The explorer's introspection query changes with its version, so it is in no manifest.
  private isExplorerQuery(text: string): boolean {
    if (!this.config.graphqlExplorer) return false;
    const document = this.parsed(text);
    return (
      document?.definitions.every(
        (definition) =>
          definition.kind !== Kind.OPERATION_DEFINITION || selectsSchemaOnly(definition),
      ) ?? false
    );
  }

  private parsed(text: string): DocumentNode | undefined {
    try {
      return parse(text, { maxTokens: this.config.graphqlMaxTokens, noLocation: true });
    } catch {
      return undefined;
    }
  }

  private log({ log, userAgent }: Context, text: string, requestedName: unknown): void {
    const hash = sha256(text);
    if (this.logged.has(hash)) return;
    const document = this.parsed(text);
    // Unparsable documents do not run.
    if (!document) return;
    this.logged.set(hash, true);
    const operationName = getOperationAST(
      document,
      typeof requestedName === 'string' ? requestedName : undefined,
    )?.name?.value.slice(0, MAX_NAME_LENGTH);
    log.warn(
      { event: 'graphql.untrusted', sha256: hash, operationName, userAgent },
      'Untrusted document executed',
    );
  }
}

/** Returns the configured trusted documents, if any. Throws ConfigError for unusable manifests. */
export function trustedDocuments(config: Config): TrustedDocuments | undefined {
  if (config.trustedDocumentsMode === 'off') return undefined;
  try {
    return new TrustedDocuments(config);
  } catch (error) {
    throw error instanceof ManifestError
      ? new ConfigError([`TRUSTED_DOCUMENTS: ${error.message}`])
      : error;
  }
}

function namesIn(text: string): string[] {
  const operations = parse(text, { noLocation: true }).definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  );
  return operations.flatMap(({ name }) => name?.value ?? []);
}

function rejectId(message: string): never {
  throw new DomainError('PERSISTED_QUERY_NOT_FOUND', message);
}

// Returns the hash in the format of Apollo's clients. Throws for other values of persistedQuery.
function hashIn(extensions: unknown): string | undefined {
  const persistedQuery = isRecord(extensions) ? extensions['persistedQuery'] : undefined;
  if (persistedQuery == null) return undefined;
  if (
    isRecord(persistedQuery) &&
    persistedQuery['version'] === 1 &&
    typeof persistedQuery['sha256Hash'] === 'string'
  )
    return persistedQuery['sha256Hash'];
  throw new HttpError(400, 'persistedQuery must have version 1 and a sha256Hash');
}

function withoutId(extensions: unknown): { extensions?: unknown } {
  if (!isRecord(extensions) || !('persistedQuery' in extensions))
    return extensions === undefined ? {} : { extensions };
  const { persistedQuery: _, ...rest } = extensions;
  return Object.keys(rest).length > 0 ? { extensions: rest } : {};
}

function selectsSchemaOnly({
  operation,
  selectionSet: { selections },
}: OperationDefinitionNode): boolean {
  return (
    operation === OperationTypeNode.QUERY &&
    selections.every((part) => part.kind === Kind.FIELD && part.name.value.startsWith('__'))
  );
}

function single(params: URLSearchParams, name: string): string | undefined {
  const [value, ...rest] = params.getAll(name);
  if (rest.length > 0) throw new HttpError(400, `The query string has ${name} more than once`);
  return value;
}

// Invalid JSON is rejected later.
function jsonOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
