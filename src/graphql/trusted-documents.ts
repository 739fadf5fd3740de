import { createHash } from 'node:crypto';
import { getOperationAST, Kind, OperationTypeNode, parse, type DocumentNode, type OperationDefinitionNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import { ConfigError, type Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { HttpError } from '../http/http-error.ts';
import { ManifestError, readManifest } from './manifest.ts';
import { wordsOf } from './document-tokens.ts';

/** How many other spellings of trusted documents are remembered, and of how many characters together. */
const SPELLINGS = { max: 10_000, maxSize: 4_000_000 };
/** How many documents that are not trusted are remembered as having been logged. */
const MAX_LOGGED = 1_000;
/** What is logged of an operation's name, which is the client's to choose. */
const MAX_NAME = 255;

const UNTRUSTED =
  'This document is not one of the trusted documents. Add it to the manifest that the server reads, or send one that is there, by its text or its id';

/** What of a request says which document it asks for. */
interface Asked {
  query: unknown;
  documentId: unknown;
  extensions: unknown;
  operationName: unknown;
}

/** The documents that clients were built with: requests may name them by id, and others are logged or refused, as is configured. */
export class TrustedDocuments {
  private readonly texts = new Map<string, string>();
  /** The texts that are trusted as they are. */
  private readonly known = new Set<string>();
  private readonly words = new Set<string>();
  /** The names of their operations. */
  readonly operationNames = new Set<string>();
  private readonly spellings = new LRUCache<string, true>({ ...SPELLINGS, sizeCalculation: (_, text) => text.length });
  private readonly logged = new LRUCache<string, true>({ max: MAX_LOGGED });

  constructor(private readonly config: Pick<Config, 'trustedDocuments' | 'explorer' | 'graphqlLimits'>) {
    for (const file of config.trustedDocuments.files) {
      for (const { id, text } of readManifest(file)) {
        const hash = sha256(text);
        for (const name of [id, hash, `sha256:${hash}`]) this.add(file, name, text);
        this.known.add(text);
        for (const name of namesIn(text)) this.operationNames.add(name);
        const words = wordsOf(text);
        if (words !== undefined) this.words.add(words);
      }
    }
  }

  /** The body of a request, with the text of the document that it names by id. Throws where that may not run. */
  readBody(ctx: Context, body: unknown): unknown {
    // Anything else is refused later, in words of its own.
    if (!isRecord(body)) return body;
    const { query, documentId, extensions, ...rest } = body;
    const text = this.textFor(ctx, { query, documentId, extensions, operationName: rest['operationName'] });
    return { ...rest, ...(text !== undefined && { query: text }), ...withoutId(extensions) };
  }

  /** As `readBody`, of the query of a request's target. */
  readSearch(ctx: Context, search: string): string {
    const params = new URLSearchParams(search);
    const query = single(params, 'query');
    const documentId = single(params, 'documentId');
    const extensions = jsonOf(single(params, 'extensions'));
    const text = this.textFor(ctx, { query, documentId, extensions, operationName: single(params, 'operationName') });
    if (documentId === undefined && hashIn(extensions) === undefined) return search;
    const { extensions: others } = withoutId(extensions);
    for (const name of ['documentId', 'extensions']) params.delete(name);
    if (others !== undefined) params.set('extensions', JSON.stringify(others));
    params.set('query', String(text));
    return `?${params.toString()}`;
  }

  private add(file: string, id: string, text: string): void {
    const before = this.texts.get(id);
    if (before !== undefined && before !== text) throw new ManifestError(`${file}: the id ${id} stands for two documents`);
    this.texts.set(id, text);
  }

  /** The text that is to run: of the id, or what was sent. */
  private textFor(ctx: Context, asked: Asked): unknown {
    const { query, documentId } = asked;
    const hash = hashIn(asked.extensions);
    if (documentId != null) {
      if (query != null || hash !== undefined) throw new HttpError(400, 'A request has one of query, documentId and persistedQuery');
      if (typeof documentId !== 'string') throw new HttpError(400, 'documentId has to be text');
      return (
        this.texts.get(documentId) ?? refuseId('There is no document with this id: the manifest that the server reads does not list it')
      );
    }
    // The words that clients of automatic persisted queries know, who then send the text.
    if (hash !== undefined && query == null) return this.texts.get(hash) ?? refuseId('PersistedQueryNotFound');
    if (typeof query !== 'string') return query;
    if (hash !== undefined && this.texts.get(hash) !== query && sha256(query) !== hash) {
      throw new HttpError(400, 'The hash of persistedQuery is of another document');
    }
    if (this.trusts(query)) return query;
    if (this.config.trustedDocuments.mode === 'enforce') throw new DomainError('DOCUMENT_NOT_TRUSTED', UNTRUSTED);
    this.log(ctx, query, asked.operationName);
    return query;
  }

  private trusts(text: string): boolean {
    if (this.known.has(text) || this.spellings.has(text)) return true;
    if (!this.isSpelling(text) && !this.isOfExplorer(text)) return false;
    this.spellings.set(text, true);
    return true;
  }

  private isSpelling(text: string): boolean {
    try {
      const words = wordsOf(text, this.config.graphqlLimits.tokens);
      return words !== undefined && this.words.has(words);
    } catch {
      return false;
    }
  }

  // The explorer shows the schema by a document that is its own, and another one in each version.
  private isOfExplorer(text: string): boolean {
    if (!this.config.explorer) return false;
    const document = this.parsed(text);
    return (
      document?.definitions.every((definition) => definition.kind !== Kind.OPERATION_DEFINITION || asksSchemaOnly(definition)) ?? false
    );
  }

  private parsed(text: string): DocumentNode | undefined {
    try {
      return parse(text, { maxTokens: this.config.graphqlLimits.tokens, noLocation: true });
    } catch {
      return undefined;
    }
  }

  private log({ log, userAgent }: Context, text: string, asked: unknown): void {
    const hash = sha256(text);
    if (this.logged.has(hash)) return;
    const document = this.parsed(text);
    // It does not run either.
    if (!document) return;
    this.logged.set(hash, true);
    const operationName = getOperationAST(document, typeof asked === 'string' ? asked : undefined)?.name?.value.slice(0, MAX_NAME);
    log.warn({ event: 'graphql.untrusted', sha256: hash, operationName, userAgent }, 'a document that is not trusted was run');
  }
}

/** The trusted documents that are configured, where they are. Throws ConfigError for manifests that cannot be used. */
export function trustedDocuments(config: Config): TrustedDocuments | undefined {
  if (config.trustedDocuments.mode === 'off') return undefined;
  try {
    return new TrustedDocuments(config);
  } catch (error) {
    throw error instanceof ManifestError ? new ConfigError([`TRUSTED_DOCUMENTS: ${error.message}`]) : error;
  }
}

function namesIn(text: string): string[] {
  const operations = parse(text, { noLocation: true }).definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  return operations.flatMap(({ name }) => name?.value ?? []);
}

function refuseId(message: string): never {
  throw new DomainError('PERSISTED_QUERY_NOT_FOUND', message);
}

// As Apollo's clients name a document; anything else under that name is no way to name one.
function hashIn(extensions: unknown): string | undefined {
  const named = isRecord(extensions) ? extensions['persistedQuery'] : undefined;
  if (named == null) return undefined;
  if (isRecord(named) && named['version'] === 1 && typeof named['sha256Hash'] === 'string') return named['sha256Hash'];
  throw new HttpError(400, 'persistedQuery has the version 1 and a sha256Hash');
}

function withoutId(extensions: unknown): { extensions?: unknown } {
  if (!isRecord(extensions) || !('persistedQuery' in extensions)) return extensions === undefined ? {} : { extensions };
  const { persistedQuery: _, ...others } = extensions;
  return Object.keys(others).length > 0 ? { extensions: others } : {};
}

function asksSchemaOnly({ operation, selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return operation === OperationTypeNode.QUERY && selections.every((part) => part.kind === Kind.FIELD && part.name.value.startsWith('__'));
}

function single(params: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = params.getAll(name);
  if (others.length > 0) throw new HttpError(400, `The query has ${name} more than once`);
  return value;
}

// What is no JSON is refused later, in words of its own.
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
