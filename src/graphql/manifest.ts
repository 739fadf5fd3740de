import { readFileSync } from 'node:fs';
import { GraphQLError, Kind, parse } from 'graphql';
import { z } from 'zod';
import { DomainError } from '../core/errors.ts';
import { fileErrorCode } from '../core/file-error.ts';

/** A document of a manifest. */
interface ManifestDocument {
  id: string;
  text: string;
  operationNames: string[];
}

const nonEmpty = z.string().min(1, 'must not be empty');
const apolloManifest = z
  .object({
    format: z.literal('apollo-persisted-query-manifest'),
    version: z.literal(1),
    operations: z.array(z.object({ id: nonEmpty, body: nonEmpty })),
  })
  .transform(({ operations }) => operations.map(({ id, body }) => [id, body] as const));
const textsById = z.record(nonEmpty, nonEmpty).transform((texts) => Object.entries(texts));

/**
 * Returns the documents of a manifest: of Apollo's tools, or texts by id, as the Relay compiler and
 * GraphQL Code Generator write them. Throws BAD_USER_INPUT if it is unreadable or invalid.
 */
export function readManifest(file: string): ManifestDocument[] {
  const value = readJson(file);
  const isApollo = typeof value === 'object' && value !== null && 'format' in value;
  const { data, error } = (isApollo ? apolloManifest : textsById).safeParse(value);
  if (error) throw badManifest(`${file} is not a document manifest: ${firstProblem(error)}`);
  return data.map(([id, text]) => {
    try {
      return { id, text, operationNames: operationNamesIn(text) };
    } catch (problem) {
      if (!(problem instanceof GraphQLError)) throw problem;
      throw badManifest(`${file}: document ${id} cannot be parsed: ${problem.message}`);
    }
  });
}

/** Returns the error for an unusable manifest. */
export function badManifest(message: string): DomainError {
  return new DomainError('BAD_USER_INPUT', message);
}

/** Returns the first problem as `path: message`. */
export function firstProblem({ issues: [issue] }: z.ZodError): string {
  return [...(issue?.path.length ? [issue.path.join('.')] : []), issue?.message].join(': ');
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw error instanceof SyntaxError
      ? badManifest(`${file} is not a document manifest: it is not JSON`)
      : badManifest(`${file} cannot be read (${fileErrorCode(error)})`);
  }
}

function operationNamesIn(text: string): string[] {
  return parse(text, { noLocation: true }).definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? (definition.name?.value ?? []) : [],
  );
}
