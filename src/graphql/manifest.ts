import { readFileSync } from 'node:fs';
import { GraphQLError, parse } from 'graphql';
import { z } from 'zod';
import { refusalOfFile } from '../core/file-error.ts';

/** A document of a manifest: one that a client was built with. */
export interface ManifestDocument {
  id: string;
  /** The name of its operation, where the manifest tells. */
  name?: string | undefined;
  text: string;
}

/** A manifest in the format of Apollo's tools: what `documents extract` writes. */
export interface Manifest {
  format: typeof FORMAT;
  version: 1;
  operations: { id: string; name: string; type: string; body: string }[];
}

/** A manifest that cannot be used. The message begins with its file. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

/** What Apollo's tools call the format. */
export const FORMAT = 'apollo-persisted-query-manifest';

const filled = z.string().min(1, 'must not be empty');
const ofApollo = z
  .object({
    format: z.literal(FORMAT),
    version: z.literal(1),
    operations: z.array(z.object({ id: filled, name: z.string().optional(), body: filled })),
  })
  .transform(({ operations }) => operations.map(({ id, name, body }): ManifestDocument => ({ id, name, text: body })));
const ofCodegen = z
  .record(filled, filled)
  .transform((texts) => Object.entries(texts).map(([id, text]): ManifestDocument => ({ id, text })));

/**
 * The documents of a manifest, as Apollo's tools write it, or GraphQL Code Generator (`persisted-documents.json`: texts by their
 * ids). Throws ManifestError where there is none to read.
 */
export function readManifest(file: string): ManifestDocument[] {
  const value = valueIn(file);
  const format = typeof value === 'object' && value !== null && 'format' in value ? ofApollo : ofCodegen;
  const result = format.safeParse(value);
  if (!result.success) throw new ManifestError(`${file} is no manifest of documents: ${problemOf(result.error)}`);
  for (const document of result.data) refuseUnreadable(file, document);
  return result.data;
}

function valueIn(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ManifestError(`${file} cannot be read (${refusalOfFile(error)})`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new ManifestError(`${file} is no manifest of documents: it is not JSON`);
  }
}

function problemOf({ issues: [issue] }: z.ZodError): string {
  return issue ? [issue.path.join('.'), issue.message].filter((part) => part !== '').join(': ') : 'nothing is known of it';
}

function refuseUnreadable(file: string, { id, text }: ManifestDocument): void {
  try {
    parse(text);
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new ManifestError(`${file}: the document ${id} cannot be read: ${error.message}`);
  }
}
