import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError, type Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { fileErrorCode } from '../core/file-error.ts';
import { parseJson } from '../http/body.ts';
import { HttpError } from '../http/http-error.ts';

const UNTRUSTED =
  'This document is not trusted. Add it to the manifest of the server, or send a trusted document by its text or id';

const nonEmpty = z.string().min(1, 'must not be empty');
const apolloManifest = z
  .object({
    format: z.literal('apollo-persisted-query-manifest'),
    version: z.literal(1),
    operations: z.array(z.object({ id: nonEmpty, body: nonEmpty })),
  })
  .transform(({ operations }) => operations.map(({ id, body }) => [id, body] as const));
const textsById = z.record(nonEmpty, nonEmpty).transform((texts) => Object.entries(texts));

/** A request, with the members that identify its document. */
const requestSchema = z.looseObject({
  query: z.string().nullish(),
  documentId: z.string().nullish(),
  extensions: z
    .looseObject({ persistedQuery: z.object({ sha256Hash: z.string() }).nullish() })
    .nullish(),
});

/** Trusted documents. Requests reference them by id, or send their exact text. */
export class TrustedDocuments {
  private readonly texts: ReadonlyMap<string, string>;
  private readonly trusted: ReadonlySet<string>;

  /** Throws BAD_USER_INPUT for unusable manifests. */
  constructor(files: readonly string[]) {
    this.texts = new Map(files.flatMap(readManifest));
    this.trusted = new Set(this.texts.values());
  }

  /** Replaces a document id in a request body by the text. Throws if the document may not run. */
  readBody(body: unknown): { query: string | undefined; extensions: object } {
    const { data, error } = requestSchema.safeParse(body);
    if (error) throw new HttpError(400, firstProblem(error));
    const { query, documentId, extensions, ...rest } = data;
    const { persistedQuery, ...otherExtensions } = extensions ?? {};
    const id = documentId ?? persistedQuery?.sha256Hash;
    return { ...rest, query: this.textFor(query, id), extensions: otherExtensions };
  }

  /** Does the same as `readBody` for a query string. */
  readSearch(search: string): string {
    const params = new URLSearchParams(search);
    const [query, documentId, json] = ['query', 'documentId', 'extensions'].map((name) =>
      params.get(name),
    );
    const read = this.readBody({ query, documentId, extensions: json && parseJson(json) });
    params.delete('documentId');
    params.set('extensions', JSON.stringify(read.extensions));
    if (read.query !== undefined) params.set('query', read.query);
    return `?${params.toString()}`;
  }

  // An empty text counts as absent. Requests without a document are rejected later.
  private textFor(query: string | null | undefined, id: string | undefined): string | undefined {
    if (query) {
      if (this.trusted.has(query)) return query;
      throw new DomainError('DOCUMENT_NOT_TRUSTED', UNTRUSTED);
    }
    const text = id === undefined ? undefined : this.texts.get(id);
    // Clients of automatic persisted queries recognize this message and send the text.
    if (id !== undefined && text === undefined)
      throw new DomainError('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
    return text;
  }
}

/** Returns the configured trusted documents, if any. Throws ConfigError for unusable manifests. */
export function trustedDocuments(config: Config): TrustedDocuments | undefined {
  if (config.trustedDocumentsMode === 'off') return undefined;
  try {
    return new TrustedDocuments(config.trustedDocuments);
  } catch (error) {
    throw error instanceof DomainError
      ? new ConfigError([`TRUSTED_DOCUMENTS: ${error.message}`])
      : error;
  }
}

/**
 * Returns the ids and texts of a manifest: of Apollo's tools, or texts by id, as the Relay compiler
 * and GraphQL Code Generator write them. Throws BAD_USER_INPUT if it is unreadable or invalid.
 */
function readManifest(file: string): (readonly [id: string, text: string])[] {
  const value = readJson(file);
  const isApollo = typeof value === 'object' && value !== null && 'format' in value;
  const { data, error } = (isApollo ? apolloManifest : textsById).safeParse(value);
  if (error) throw badManifest(`${file} is not a document manifest: ${firstProblem(error)}`);
  return data;
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const isText = error instanceof SyntaxError;
    throw badManifest(
      `${file} ${isText ? 'is not JSON' : `cannot be read (${fileErrorCode(error)})`}`,
    );
  }
}

function badManifest(message: string): DomainError {
  return new DomainError('BAD_USER_INPUT', message);
}

/** Returns the first problem as `path: message`. */
function firstProblem({ issues: [issue] }: z.ZodError): string {
  return [...(issue?.path.length ? [issue.path.join('.')] : []), issue?.message].join(': ');
}
