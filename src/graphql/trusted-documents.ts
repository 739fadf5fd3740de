import { createHash } from 'node:crypto';
import { Kind, OperationTypeNode, parse, type OperationDefinitionNode } from 'graphql';
import { ConfigError, type Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { HttpError } from '../http/http-error.ts';
import { ManifestError, readManifest } from './manifest.ts';

const UNTRUSTED =
  'This document is not trusted. Add it to the manifest of the server, or send a trusted document by its text or id';

/** The parts of a request that identify its document. */
interface DocumentReference {
  query: unknown;
  documentId: unknown;
  extensions: unknown;
}

/** Trusted documents. Requests reference them by id, or send their exact text. */
export class TrustedDocuments {
  /** Texts by id. */
  private readonly texts = new Map<string, string>();
  /** All texts. */
  private readonly trusted = new Set<string>();
  /** Names of their operations. */
  readonly operationNames = new Set<string>();

  constructor(private readonly config: Config) {
    for (const file of config.trustedDocuments) {
      for (const { id, text } of readManifest(file)) {
        const hash = sha256(text);
        for (const name of [id, hash, `sha256:${hash}`]) this.add(file, name, text);
        this.trusted.add(text);
        for (const name of namesIn(text)) this.operationNames.add(name);
      }
    }
  }

  /** Replaces a document id in a request body by the text. Throws if the document may not run. */
  readBody(body: unknown): unknown {
    // Other bodies are rejected later.
    if (!isRecord(body)) return body;
    const { query, documentId, extensions, ...rest } = body;
    const text = this.textFor({ query, documentId, extensions });
    return { ...rest, ...(text !== undefined && { query: text }), ...withoutId(extensions) };
  }

  /** Does the same as `readBody` for a query string. */
  readSearch(search: string): string {
    const params = new URLSearchParams(search);
    const query = single(params, 'query');
    const documentId = single(params, 'documentId');
    const extensions = jsonOf(single(params, 'extensions'));
    const text = this.textFor({ query, documentId, extensions });
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
  private textFor(reference: DocumentReference): unknown {
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
    if (hash !== undefined && this.texts.get(hash) !== query && sha256(query) !== hash)
      throw new HttpError(400, 'The hash of persistedQuery does not match the query');
    if (this.trusted.has(query) || this.isExplorerQuery(query)) return query;
    throw new DomainError('DOCUMENT_NOT_TRUSTED', UNTRUSTED);
  }

  // The explorer's introspection query changes with its version, so it is in no manifest.
  private isExplorerQuery(text: string): boolean {
    const { graphqlExplorer, graphqlMaxTokens: maxTokens } = this.config;
    if (!graphqlExplorer) return false;
    try {
      return parse(text, { maxTokens, noLocation: true }).definitions.every(
        (definition) =>
          definition.kind !== Kind.OPERATION_DEFINITION || selectsSchemaOnly(definition),
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
