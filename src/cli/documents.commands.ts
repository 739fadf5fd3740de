import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { parse, print, type GraphQLError } from 'graphql';
import { DomainError } from '../core/errors.ts';
import { refusalOfFile } from '../core/file-error.ts';
import { faultsOf } from '../graphql/document-validation.ts';
import { FORMAT, readManifest, type Manifest } from '../graphql/manifest.ts';
import { makeSchema } from '../graphql/schema.ts';
import type { CommandContext } from './command-context.ts';
import { runWithoutDatabase } from './command.ts';
import { readOperations, type Operation } from './operations.ts';

/** `documents …`: what an operator does to the lists of GraphQL documents that are trusted. */
export function documentCommands(context: CommandContext): Command {
  const documents = new Command('documents').description('Make and check manifests of trusted GraphQL documents.');

  documents
    .command('extract')
    .description(
      'Write a manifest of all operations in .graphql and .gql files, each with its fragments. It is printed, or written to a file.',
    )
    .argument('<path...>', 'files, and directories that are searched for them')
    .option('--out <file>', 'where to write it')
    .option('--typename', 'add __typename to each selection, as Apollo Client does')
    .action((paths: string[], { out, typename = false }: { out?: string; typename?: boolean }) =>
      runWithoutDatabase(context, async ({ graphqlLimits }) => {
        const schema = await makeSchema();
        const operations = readOperations(paths, typename);
        // What is wrong is told of the files as they are; what is too much, of the text that will be sent.
        refuseFaults(
          operations.flatMap(({ document, at }) =>
            faultsOf(schema, graphqlLimits, print(document), document).map((fault) => placed(fault, at)),
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
    .description('Say whether the documents of manifests can still be run.')
    .argument('<manifest...>', 'files')
    .action((files: string[]) =>
      runWithoutDatabase(context, async ({ graphqlLimits }) => {
        const schema = await makeSchema();
        const found = files.flatMap((file) => readManifest(file).map((document) => ({ file, ...document })));
        refuseFaults(
          found.flatMap(({ file, id, name = id, text }) =>
            faultsOf(schema, graphqlLimits, text, parse(text)).map(({ message }) => `${file}: ${name}: ${message}`),
          ),
        );
        context.print(`All documents can be run: ${found.length}.`);
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

function placed({ message, nodes, locations }: GraphQLError, at: string): string {
  const file = nodes?.[0]?.loc?.source.name;
  const [place] = locations ?? [];
  return `${file !== undefined && place ? `${file}:${place.line}` : at}: ${message}`;
}

// A fault of a fragment is one of each operation that spreads it.
function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new DomainError('BAD_USER_INPUT', [...new Set(faults)].join('\n'));
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new DomainError('BAD_USER_INPUT', `${file} cannot be written (${refusalOfFile(error)})`);
  }
}
