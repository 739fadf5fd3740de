import { Command } from 'commander';
import { DomainError } from '../core/errors.ts';
import { validateDocument } from '../graphql/document-validation.ts';
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
        const entries = files.flatMap((file) =>
          readManifest(file).map((document) => ({ file, ...document })),
        );
        const problems = entries.flatMap(({ file, id, text, operationNames: [name = id] }) =>
          validateDocument(schema, config, text).map(
            ({ message }) => `${file}: ${name}: ${message}`,
          ),
        );
        if (problems.length > 0) throw new DomainError('BAD_USER_INPUT', problems.join('\n'));
        context.print(`All documents are valid: ${entries.length}.`);
      }),
    );

  return documents;
}
