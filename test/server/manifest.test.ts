import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { trustedDocuments } from '../../src/graphql/trusted-documents.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';

const APOLLO = { format: 'apollo-persisted-query-manifest', version: 1 };

test.each<[string, string | undefined, RegExp]>([
  ['a file that is not there', undefined, /cannot be read \(ENOENT\)$/],
  ['an empty file', '', /is no manifest of documents: it is not JSON$/],
  ['a file that is not JSON', 'query { me }', /is no manifest of documents: it is not JSON$/],
  ['a list', '[]', /is no manifest of documents: .*expected record/],
  ['text', '"x"', /is no manifest of documents: .*expected record/],
  ['null', 'null', /is no manifest of documents: .*expected record/],
  ['an id that stands for no text', '{"a":5}', /is no manifest of documents: a: .*expected string/],
  ['an id that stands for an empty text', '{"a":""}', /is no manifest of documents: a: must not be empty$/],
  ['an empty id', '{"":"{ me { id } }"}', /is no manifest of documents: /],
  ['another format', '{"format":"relay","operations":[]}', /is no manifest of documents: format: /],
  ['another version', JSON.stringify({ ...APOLLO, version: 2, operations: [] }), /is no manifest of documents: version: /],
  ['no operations', JSON.stringify(APOLLO), /is no manifest of documents: operations: /],
  [
    'an operation without a text',
    JSON.stringify({ ...APOLLO, operations: [{ id: 'a' }] }),
    /is no manifest of documents: operations\.0\.body: /,
  ],
  ['a text that is no document', '{"a":"query {"}', /: the document a cannot be read: Syntax Error: /],
  [
    'an id for two texts',
    JSON.stringify({ ...APOLLO, operations: ['{ me { id } }', '{ me { username } }'].map((body) => ({ id: 'a', body })) }),
    /: the id a stands for two documents$/,
  ],
])('a manifest that is %s is refused by the name of its file, in one line', async (_what, text, problem) => {
  await withDirectory(async (folder) => {
    const file = join(folder, 'manifest.json');
    if (text !== undefined) await writeFile(file, text);
    for (const TRUSTED_DOCUMENTS_MODE of ['log', 'enforce']) {
      const env = { SIGNING_SECRET: TEST_SECRET, TRUSTED_DOCUMENTS: file, TRUSTED_DOCUMENTS_MODE };
      const [found, ...others] = problemsOf(() => trustedDocuments(readConfig(env, () => undefined)));
      expect(others).toEqual([]);
      expect(found).toMatch(problem);
      expect(found).toMatch(/^[^\n]+$/);
      expect(found?.startsWith(`TRUSTED_DOCUMENTS: ${file}`)).toBe(true);
    }
  });
});

function problemsOf(work: () => unknown): readonly string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
