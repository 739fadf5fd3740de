import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { parse, print, type GraphQLError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { fileErrorCode } from '../core/file-error.ts';
import { validateDocument } from '../graphql/document-validation.ts';
import { FORMAT, readManifest, type Manifest } from '../graphql/manifest.ts';
import { makeSchema } from '../graphql/schema.ts';
import type { CommandContext } from './command-context.ts';
import { runWithoutDatabase } from './command.ts';
import { readOperations, type Operation } from './operations.ts';

/** `documents …`: creates and checks manifests of trusted GraphQL documents. */
export function documentCommands(context: CommandContext): Command {
  const documents = new Command();

  documents
    .command('extract')
    .description(
      'Create a manifest of all operations in .graphql and .gql files, with their fragments, and print it or write it to a file.',
    )
    .argument('<path...>', 'files, or directories to search')
    .option('--out <file>', 'the file to write')
    .option('--typename', 'add __typename to each selection, as Apollo Client does')
    .action((paths: string[], { out, typename = false }: { out?: string; typename?: boolean }) =>
      runWithoutDatabase(context, async (config) => {
        const schema = await makeSchema();
        const operations = readOperations(paths, typename);
        // Errors name the lines of the files. The limits apply to the printed text, which is sent.
        throwProblems(
          operations.flatMap(({ document, at }) =>
            validateDocument(schema, config, print(document), document).map((error) =>
              withPlace(error, at),
            ),
          ),
        );
        const text = `${JSON.stringify(manifestOf(operations), undefined, 2)}\n`;
        if (out === undefined) context.stdout.write(text);
        else {
          write(out, text);
          context.print(`Documents in ${out}: ${operations.length}.`);
        }
      }),
    );

  documents
    .command('check')
    .description('Check the documents of manifests against the schema and the limits.')
    .argument('<manifest...>', 'files')
    .action((files: string[]) =>
      runWithoutDatabase(context, async (config) => {
        const schema = await makeSchema();
        const entries = files.flatMap((file) =>
          readManifest(file).map((document) => ({ file, ...document })),
        );
        throwProblems(
          entries.flatMap(({ file, id, name = id, text }) =>
            validateDocument(schema, config, text, parse(text)).map(
              ({ message }) => `${file}: ${name}: ${message}`,
            ),
          ),
        );
        context.print(`All documents are valid: ${entries.length}.`);
      }),
    );

  return documents;
}

function manifestOf(operations: readonly Operation[]): Manifest {
  return {
    format: FORMAT,
    version: 1,
    operations: operations.map(({ name, type, document }) => {
      const body = print(document);
      return { id: createHash('sha256').update(body).digest('hex'), name, type, body };
    }),
  };
}

function withPlace({ message, nodes, locations }: GraphQLError, at: string): string {
  const file = nodes?.[0]?.loc?.source.name;
  const [place] = locations ?? [];
  return `${file !== undefined && place ? `${file}:${place.line}` : at}: ${message}`;
}

// Removes duplicates: an error in a fragment is found for each operation that spreads it.
function throwProblems(problems: readonly string[]): void {
  if (problems.length > 0)
    throw new DomainError('BAD_USER_INPUT', [...new Set(problems)].join('\n'));
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new DomainError('BAD_USER_INPUT', `${file} cannot be written (${fileErrorCode(error)})`);
  }
}
