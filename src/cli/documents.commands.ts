import { Command } from 'commander';
import { Kind, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { Cost } from '../graphql/cost.ts';
import { Documents } from '../graphql/documents.ts';
import { readManifest } from '../graphql/manifest.ts';
import { makeSchema } from '../graphql/schema.ts';
import type { CommandContext } from './command-context.ts';
import { runWithoutDatabase } from './command.ts';

/** `documents …`: checks manifests of trusted GraphQL documents. */
export function documentCommands(context: CommandContext): Command {
  const documents = new Command();

  documents
    .command('check')
    .description('Check the documents of manifests against the schema and the limits.')
    .argument('<manifest...>', 'files')
    .action((files: string[]) =>
      runWithoutDatabase(context, async (config) => {
        const schema = await makeSchema();
        const parsed = new Documents(schema, config);
        const entries = files.flatMap((file) =>
          readManifest(file).map((document) => ({ file, ...document })),
        );
        const problems = entries.flatMap(({ file, id, text, operationNames: [name = id] }) => {
          const document = parsed.read(text);
          const errors = 'kind' in document ? costErrors(schema, config, document) : document;
          return errors.map(({ message }) => `${file}: ${name}: ${message}`);
        });
        if (problems.length > 0) throw new DomainError('BAD_USER_INPUT', problems.join('\n'));
        context.print(`All documents are valid: ${entries.length}.`);
      }),
    );

  return documents;
}

// Computes the cost with the default values of the variables.
function costErrors(schema: GraphQLSchema, config: Config, document: DocumentNode) {
  return document.definitions
    .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
    .map((operation) => new Cost(schema, document, operation, config.graphqlMaxCost).errorFor({}))
    .filter((error) => error !== undefined);
}
