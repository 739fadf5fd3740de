import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { trustedDocuments } from '../../src/graphql/trusted-documents.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';

const APOLLO = { format: 'apollo-persisted-query-manifest', version: 1 };

test.each<[string, string | undefined, RegExp]>([
  ['a missing file', undefined, /cannot be read \(ENOENT\)$/],
  ['an empty file', '', /is not JSON$/],
  ['a file that is not JSON', 'query { me }', /is not JSON$/],
  ['a list', '[]', /is not a document manifest: .*expected record/],
  ['text', '"x"', /is not a document manifest: .*expected record/],
  ['null', 'null', /is not a document manifest: .*expected record/],
  [
    'an id of a value that is not text',
    '{"a":5}',
    /is not a document manifest: a: .*expected string/,
  ],
  ['an id of an empty text', '{"a":""}', /is not a document manifest: a: must not be empty$/],
  ['an empty id', '{"":"{ me { id } }"}', /is not a document manifest: /],
  ['another format', '{"format":"relay","operations":[]}', /is not a document manifest: format: /],
  [
    'another version',
    JSON.stringify({ ...APOLLO, version: 2, operations: [] }),
    /is not a document manifest: version: /,
  ],
  ['no operations', JSON.stringify(APOLLO), /is not a document manifest: operations: /],
  [
    'an operation without a text',
    JSON.stringify({ ...APOLLO, operations: [{ id: 'a' }] }),
    /is not a document manifest: operations\.0\.body: /,
  ],
])(
  'a manifest that is %s is rejected in one line that names its file',
  async (_what, text, problem) => {
    await withDirectory(async (folder) => {
      const file = join(folder, 'manifest.json');
      if (text !== undefined) await writeFile(file, text);
      const env = {
        SIGNING_SECRET: TEST_SECRET,
        TRUSTED_DOCUMENTS: file,
        TRUSTED_DOCUMENTS_MODE: 'enforce',
      };
      const [found, ...others] = problemsOf(() =>
        trustedDocuments(readConfig(env, () => undefined)),
      );
      expect(others).toEqual([]);
      expect(found).toMatch(problem);
      expect(found).toMatch(/^[^\n]+$/);
      expect(found?.startsWith(`TRUSTED_DOCUMENTS: ${file}`)).toBe(true);
    });
  },
);

function problemsOf(work: () => unknown): readonly string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
