import { readFileSync } from 'node:fs';
import { GraphQLError, parse } from 'graphql';
import { z } from 'zod';
import { fileErrorCode } from '../core/file-error.ts';

/** A document of a manifest. */
interface ManifestDocument {
  id: string;
  /** Name of the operation, if the manifest contains it. */
  name?: string | undefined;
  text: string;
}

/** Error for an unusable manifest. The message begins with the file. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

/** Name of the format in Apollo's tools. */
const FORMAT = 'apollo-persisted-query-manifest';

const nonEmpty = z.string().min(1, 'must not be empty');
const apolloManifest = z
  .object({
    format: z.literal(FORMAT),
    version: z.literal(1),
    operations: z.array(z.object({ id: nonEmpty, name: z.string().optional(), body: nonEmpty })),
  })
  .transform(({ operations }) =>
    operations.map(({ id, name, body }): ManifestDocument => ({ id, name, text: body })),
  );
const codegenManifest = z
  .record(nonEmpty, nonEmpty)
  .transform((texts) =>
    Object.entries(texts).map(([id, text]): ManifestDocument => ({ id, text })),
  );

/**
 * Returns the documents of a manifest: of Apollo's tools, or texts by id, as the Relay compiler and
 * GraphQL Code Generator write them. Throws ManifestError if it is unreadable or invalid.
 */
export function readManifest(file: string): ManifestDocument[] {
  const value = readJson(file);
  const format =
    typeof value === 'object' && value !== null && 'format' in value
      ? apolloManifest
      : codegenManifest;
  const result = format.safeParse(value);
  if (!result.success)
    throw new ManifestError(`${file} is not a document manifest: ${problemOf(result.error)}`);
  for (const document of result.data) rejectUnparsable(file, document);
  return result.data;
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ManifestError(`${file} cannot be read (${fileErrorCode(error)})`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new ManifestError(`${file} is not a document manifest: it is not JSON`);
  }
}

function problemOf({ issues: [issue] }: z.ZodError): string {
  return issue
    ? [issue.path.join('.'), issue.message].filter((part) => part !== '').join(': ')
    : 'unknown error';
}

function rejectUnparsable(file: string, { id, text }: ManifestDocument): void {
  try {
    parse(text);
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new ManifestError(`${file}: document ${id} cannot be parsed: ${error.message}`);
  }
}
