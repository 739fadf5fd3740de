import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { withDirectory } from '../support/directories.ts';
import type { ProcessResult } from '../support/process.ts';
import { Shop } from '../support/shop.ts';

/** Nothing listens there, so a command that works needs no database. */
const NO_DATABASE = { DATABASE_URL: 'postgresql://user@127.0.0.1:1/shop' };
const PRODUCTS =
  'query Products($first: Int = 3) { products(first: $first) { totalCount nodes { ...Shown } } }';
const SHOWN = 'fragment Shown on Product { ...Named price }';
const NAMED = '# for lists\nfragment Named on Product { pk name }';
const ADD = 'mutation Add($itemId: String!) { addItem(itemId: $itemId) { itemId } }';
const PRODUCTS_PRINTED = `query Products($first: Int = 3) {
  products(first: $first) {
    totalCount
    nodes {
      ...Shown
    }
  }
}

fragment Named on Product {
  pk
  name
}

fragment Shown on Product {
  ...Named
  price
}`;
const ADD_PRINTED =
  'mutation Add($itemId: String!) {\n  addItem(itemId: $itemId) {\n    itemId\n  }\n}';
const MANIFEST = {
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: [
    { id: idOf(ADD_PRINTED), name: 'Add', type: 'mutation', body: ADD_PRINTED },
    { id: idOf(PRODUCTS_PRINTED), name: 'Products', type: 'query', body: PRODUCTS_PRINTED },
  ],
};

const documents = (
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<ProcessResult> => command(['documents', ...args], { ...NO_DATABASE, ...env });

describe('documents extract', () => {
  test('prints a manifest of all operations, each with the fragments that it spreads, from any file', async () => {
    await withFiles(
      {
        'b/products.graphql': PRODUCTS,
        'a/shown.gql': SHOWN,
        'z.graphql': NAMED,
        'items.graphql': ADD,
      },
      async (folder) => {
        const { code, stdout, stderr } = await documents(['extract', folder]);
        expect([code, stderr]).toEqual([0, '']);
        expect(JSON.parse(stdout)).toEqual(MANIFEST);
      },
    );
  });

  test('prints the same bytes for any order of files and operations and any whitespace', async () => {
    const one = await withFiles(
      { 'a.graphql': `${PRODUCTS}\n${ADD}`, 'b.graphql': `${SHOWN}\n${NAMED}` },
      (folder) => documents(['extract', folder]),
    );
    const other = await withFiles(
      {
        'x/1.gql': NAMED,
        'y/2.gql': ADD,
        'z/3.gql': `${SHOWN}\n\n${PRODUCTS.replaceAll(' ', ' , ')}`,
      },
      (folder) =>
        documents([
          'extract',
          join(folder, 'y'),
          join(folder, 'z'),
          join(folder, 'x', '1.gql'),
          join(folder, 'z'),
        ]),
    );
    expect(other).toEqual(one);
    expect(one.code).toBe(0);
  });

  test('--typename adds __typename like Apollo Client: in each selection but the root, last, and once', async () => {
    const text = 'query A { me { __typename id } products { nodes { ... on Product { pk } } } }';
    const { stdout } = await withFiles({ 'a.graphql': text }, (folder) =>
      documents(['extract', folder, '--typename']),
    );
    expect(JSON.parse(stdout).operations[0].body.replace(/\s+/g, ' ')).toBe(
      'query A { me { __typename id } products { nodes { ... on Product { pk __typename } __typename } __typename } }',
    );
  });

  test('omits other files, node_modules, hidden directories, and files with only comments', async () => {
    const files = {
      'a.graphql': ADD,
      'b.ts': 'query Broken {',
      'node_modules/c.graphql': 'query Broken {',
      '.hidden/d.graphql': 'query Broken {',
      'e.graphql': '# nothing yet\n',
    };
    const { code, stdout } = await withFiles(files, (folder) => documents(['extract', folder]));
    expect([code, JSON.parse(stdout).operations]).toEqual([0, [MANIFEST.operations[0]]]);
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'a text that is not GraphQL',
      { 'a.graphql': 'query A {\n  me {' },
      'a.graphql:2: Syntax Error: Expected Name, found <EOF>.',
    ],
    [
      'an unknown field, in a fragment of another file, once',
      {
        'a.graphql': 'query A { product(pk: 1) { ...F } }\nquery B { product(pk: 2) { ...F } }',
        'f.graphql': 'fragment F on Product {\n  nme\n}',
      },
      'f.graphql:2: Cannot query field "nme" on type "Product". Did you mean "name"?',
    ],
    [
      'an unknown fragment',
      { 'a.graphql': '\n\nquery A { me { ...F } }' },
      'a.graphql:3: Unknown fragment "F".',
    ],
    [
      'an operation without a name',
      { 'a.graphql': `${NAMED}\n{ me { id } }` },
      'a.graphql:3: The operation must have a name',
    ],
    [
      'two operations of one name',
      { 'a.graphql': ADD, 'b.graphql': `\n${ADD}` },
      'b.graphql:2: The operation Add is also defined at a.graphql:1',
    ],
    [
      'two fragments of one name',
      { 'a.graphql': `${ADD}\n${NAMED}\n${NAMED}` },
      'a.graphql:5: The fragment Named is also defined at a.graphql:3',
    ],
    [
      'a type',
      { 'a.graphql': 'type A { b: Int }' },
      'a.graphql:1: Only operations and fragments are allowed',
    ],
    [
      'too many levels',
      {
        'a.graphql': `\nquery A { me { ${'blog { nodes { creator { '.repeat(3)}id${' } } }'.repeat(3)} } }`,
      },
      'a.graphql:2: The query has more than 8 levels',
    ],
    [
      'too high a cost, by the defaults of its variables',
      {
        'a.graphql':
          'query A($n: Int = 100) { users(first: $n) { nodes { items(first: $n) { nodes { itemId } } } } }',
      },
      'a.graphql:1: The query costs 10201, which is more than 1000',
    ],
    [
      'too large a page',
      { 'a.graphql': 'query A { products(first: 101) { totalCount } }' },
      'a.graphql:1: first: must be at most 100',
    ],
    [
      'too many words',
      { 'a.graphql': `query A { me { ${'id '.repeat(1000)} } }` },
      'a.graphql:1: The query has more than 1000 tokens',
    ],
    [
      'a subscription whose field has a condition',
      {
        'a.graphql':
          'subscription A($is: Boolean = true) { productChanged @include(if: $is) { product { pk } } }',
      },
      'a.graphql:1: The field of a subscription must not have @skip or @include',
    ],
    ['nothing', { 'a.txt': ADD }, 'No operation found in .'],
  ])('rejects %s, by file and line, and writes nothing', async (_what, files, problem) => {
    await withFiles(files, async (folder) => {
      const { code, stdout, stderr } = await documents([
        'extract',
        folder,
        '--out',
        join(folder, 'out.json'),
      ]);
      expect([code, stdout, stderr.replaceAll(`${folder}/`, '').replaceAll(folder, '.')]).toEqual([
        1,
        '',
        `${problem}\n`,
      ]);
      expect(await readdir(folder)).not.toContain('out.json');
    });
  });

  test('has the configured limits', async () => {
    await withFiles(
      { 'a.graphql': 'query A { products(first: 50) { nodes { pk } } }' },
      async (folder) => {
        expect(await documents(['extract', folder])).toMatchObject({ code: 0 });
        expect(await documents(['extract', folder], { GRAPHQL_MAX_COST: '50' })).toMatchObject({
          code: 1,
          stderr: `${folder}/a.graphql:1: The query costs 51, which is more than 50\n`,
        });
        expect(await documents(['extract', folder], { GRAPHQL_MAX_COST: 'much' })).toMatchObject({
          code: 78,
          stdout: '',
        });
      },
    );
  });

  test('an unreadable or unwritable path is named', async () => {
    await withFiles({ 'a.graphql': ADD }, async (folder) => {
      expect(await documents(['extract', join(folder, 'none')])).toMatchObject({
        code: 1,
        stderr: `${folder}/none cannot be read (ENOENT)\n`,
      });
      expect(await documents(['extract', folder, '--out', folder])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `${folder} cannot be written (EISDIR)\n`,
      });
    });
  });

  test.each([
    ['extract'],
    ['extract', '--out', 'x'],
    ['check'],
    ['extract', 'a', '--format', 'x'],
    ['other'],
  ])('wrong usage ends with 64: %s', async (...args) => {
    expect(await documents(args)).toMatchObject({ code: 64, stdout: '' });
  });
});

describe('documents check', () => {
  test('reports that all documents can be run, for manifests in either format', async () => {
    const files = {
      'a.json': JSON.stringify(MANIFEST),
      'b.json': JSON.stringify({ one: '{ me { id } }', two: PRODUCTS_PRINTED }),
    };
    await withFiles(files, async (folder) => {
      expect(await documents(['check', join(folder, 'a.json'), join(folder, 'b.json')])).toEqual({
        code: 0,
        stdout: 'All documents are valid: 4.\n',
        stderr: '',
      });
    });
  });

  test('names each document that cannot be run, by its name or its id, and the reason', async () => {
    const operations = [
      { id: '1', name: 'Old', type: 'query', body: 'query Old { me { age } }' },
      ...MANIFEST.operations,
    ];
    const files = {
      'a.json': JSON.stringify({ ...MANIFEST, operations }),
      'b.json': JSON.stringify({
        dear: '{ users(first: 100) { nodes { items(first: 100) { nodes { itemId } } } } }',
      }),
    };
    await withFiles(files, async (folder) => {
      const { code, stdout, stderr } = await documents([
        'check',
        join(folder, 'a.json'),
        join(folder, 'b.json'),
      ]);
      expect([code, stdout, stderr.replaceAll(`${folder}/`, '')]).toEqual([
        1,
        '',
        'a.json: Old: Cannot query field "age" on type "User".\nb.json: dear: The query costs 10201, which is more than 1000\n',
      ]);
    });
  });

  test('a file that is not a manifest is named', async () => {
    await withFiles({ 'a.json': '[]' }, async (folder) => {
      expect(await documents(['check', join(folder, 'a.json')])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(`${folder}/a.json is not a document manifest`),
      });
    });
  });
});

test('a server that enforces the manifest runs exactly its documents, by id', async () => {
  await withFiles(
    { 'documents/a.graphql': [PRODUCTS, SHOWN, NAMED, ADD].join('\n') },
    async (folder) => {
      const out = join(folder, 'manifest.json');
      expect(await documents(['extract', join(folder, 'documents'), '--out', out])).toEqual({
        code: 0,
        stdout: `Documents in ${out}: 2.\n`,
        stderr: '',
      });
      const { operations } = JSON.parse(await readFile(out, 'utf8')) as typeof MANIFEST;
      const shop = await new Shop({
        TRUSTED_DOCUMENTS: out,
        TRUSTED_DOCUMENTS_MODE: 'enforce',
        GRAPHQL_EXPLORER: 'false',
      }).start();
      await shop.empty();
      await shop.makeProduct({ name: 'Ink' });
      const run = async (json: unknown): Promise<unknown> =>
        (await shop.rest('POST', '/graphql', { json })).body;
      const documentId = operations.find(({ name }) => name === 'Products')?.id;
      expect(await run({ documentId, variables: { first: 1 } })).toMatchObject({
        data: { products: { totalCount: 1, nodes: [{ pk: '1' }] } },
      });
      expect(await run({ query: '{ products { totalCount } }' })).toMatchObject({
        errors: [{ extensions: { code: 'DOCUMENT_NOT_TRUSTED' } }],
      });
      await shop.stop();
    },
  );
});

/** Calls `work` with a directory that has these files. */
async function withFiles<T>(
  files: Record<string, string>,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  return withDirectory(async (folder) => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return work(folder);
  });
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
