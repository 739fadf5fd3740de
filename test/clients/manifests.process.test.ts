import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { withDataDir, withDirectory } from '../support/directories.ts';
import { shell, startServer, stopServer } from '../support/process.ts';

/** A tool of a client that writes a manifest, as in docs/graphql.md. */
interface Tool {
  commands: string[];
  /** Its configuration, which is in the document. */
  config?: string;
  manifest: string;
  /** The generated file from which the client takes the id of its document. */
  source: string;
  id: RegExp;
  request: (id: string) => object;
}

const QUERY = `import { graphql } from './gql';
export const query = graphql\`
  query productsQuery { products(first: 1) { totalCount nodes { ...productsName } } }
\`;
export const fragment = graphql\`fragment productsName on Product { name }\`;
`;
const byPersistedQuery = (sha256Hash: string) => ({
  extensions: { persistedQuery: { version: 1, sha256Hash } },
});
const byDocumentId = (documentId: string) => ({ documentId });

test.each<[string, Tool]>([
  [
    'Apollo Client',
    {
      commands: ['npx generate-persisted-query-manifest'],
      manifest: 'persisted-query-manifest.json',
      source: 'persisted-query-manifest.json',
      id: /"id": "(\w+)"/,
      request: byPersistedQuery,
    },
  ],
  [
    'Relay',
    {
      commands: ["echo '{}' > relay-documents.json", 'npx relay-compiler'],
      config: 'relay.config.json',
      manifest: 'relay-documents.json',
      source: 'src/__generated__/productsQuery.graphql.ts',
      id: /"params": \{\s*"id": "(\w+)"/,
      request: byDocumentId,
    },
  ],
  [
    'GraphQL Code Generator',
    {
      commands: ['npx graphql-codegen'],
      config: 'codegen.json',
      manifest: 'src/gql/persisted-documents.json',
      source: 'src/gql/graphql.ts',
      id: /"__meta__":\{"hash":"([\w:]+)"\}/,
      request: byDocumentId,
    },
  ],
])('the server trusts the manifest of %s, and nothing else', async (_name, tool) => {
  const { commands, config, manifest, source, id, request } = tool;
  const document = await readFile('docs/graphql.md', 'utf8');
  for (const text of [...commands, manifest]) expect(document).toContain(`\`${text}\``);
  await withDirectory(async (folder) => {
    await mkdir(join(folder, 'src'));
    await writeFile(join(folder, 'src/products.ts'), QUERY);
    await symlink(resolve('schema.graphql'), join(folder, 'schema.graphql'));
    // `npm run tools` installs the tools.
    await symlink(resolve('test/tools/node_modules'), join(folder, 'node_modules'));
    if (config !== undefined) {
      const [, text = ''] =
        new RegExp(`\`${config}\`[^\`]*\`\`\`json\n(.*?)\`\`\``, 's').exec(document) ?? [];
      await writeFile(join(folder, config), text);
    }
    const command = [`cd ${folder}`, ...commands].join(' && ');
    const ended = await shell(command, {});
    expect(ended).toEqual({ ...ended, code: 0 });
    const [, documentId = ''] = id.exec(await readFile(join(folder, source), 'utf8')) ?? [];

    await withDataDir(async (dataDir) => {
      const server = await startServer({
        DATA_DIR: dataDir,
        TRUSTED_DOCUMENTS: join(folder, manifest),
        TRUSTED_DOCUMENTS_MODE: 'enforce',
      });
      try {
        expect(await send(server.url, request(documentId))).toMatchObject({
          data: { products: { totalCount: expect.any(Number) } },
        });
        const rejected = (code: string) => ({ errors: [{ extensions: { code } }] });
        expect(await send(server.url, request('f'.repeat(64)))).toMatchObject(
          rejected('PERSISTED_QUERY_NOT_FOUND'),
        );
        expect(await send(server.url, { query: '{ products { totalCount } }' })).toMatchObject(
          rejected('DOCUMENT_NOT_TRUSTED'),
        );
      } finally {
        await stopServer(server);
      }
    });
  });
});

async function send(url: string, body: object): Promise<unknown> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}
