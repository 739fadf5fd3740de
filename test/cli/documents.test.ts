import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { withDirectory } from '../support/directories.ts';
import type { ProcessResult } from '../support/process.ts';

/** Nothing listens there, so a command that works needs no database. */
const NO_DATABASE = { DATABASE_URL: 'postgresql://user@127.0.0.1:1/shop' };
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

test.each([['check'], ['check', 'a', '--format', 'x'], ['other']])(
  'wrong usage ends with 64: %s',
  async (...args) => {
    expect(await documents(args)).toMatchObject({ code: 64, stdout: '' });
  },
);

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

/** Calls `work` with a directory that has these files. */
async function withFiles<T>(
  files: Record<string, string>,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  return withDirectory(async (folder) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    return work(folder);
  });
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
