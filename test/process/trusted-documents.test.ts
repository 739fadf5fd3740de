import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '../support/jest.ts';
import { withDirectory } from '../support/directories.ts';
import { cli, run, startServer, stopServer } from '../support/process.ts';

const APOLLO = { format: 'apollo-persisted-query-manifest', version: 1 };

describe('a start with manifests of documents that cannot be used ends with 78 and one line, before there is a database', () => {
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
  ])('%s', async (_what, text, problem) => {
    await withDirectory(async (folder) => {
      const file = join(folder, 'manifest.json');
      if (text !== undefined) await writeFile(file, text);
      const data = join(folder, 'data');
      const env = {
        DATA_DIR: data,
        SIGNING_SECRET: 'only-for-tests-only-for-tests-only',
        TRUSTED_DOCUMENTS: file,
        TRUSTED_DOCUMENTS_MODE: text === undefined ? 'log' : 'enforce',
      };
      const { code, stdout, stderr } = await run('main.js', [], env);
      const [heading, line, ...others] = stderr.trimEnd().split('\n');
      expect([code, stdout, heading, others]).toEqual([78, '', 'The configuration cannot be used:', []]);
      expect(line).toMatch(problem);
      expect(line?.startsWith(`  TRUSTED_DOCUMENTS: ${file}`)).toBe(true);
      expect(existsSync(data)).toBe(false);
    });
  });

  test.each([
    [{ TRUSTED_DOCUMENTS_MODE: 'log' }, 'TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=log'],
    [{ TRUSTED_DOCUMENTS_MODE: 'enforce', TRUSTED_DOCUMENTS: ' , ' }, 'TRUSTED_DOCUMENTS is needed with TRUSTED_DOCUMENTS_MODE=enforce'],
    [{ TRUSTED_DOCUMENTS_MODE: 'on', TRUSTED_DOCUMENTS: 'x' }, 'TRUSTED_DOCUMENTS_MODE must be one of off, log, enforce'],
  ])('%j', async (env, problem) => {
    expect(await run('main.js', [], env)).toEqual({ code: 78, stdout: '', stderr: `The configuration cannot be used:\n  ${problem}\n` });
  });
});

test('the mode off looks at no file, and the operator can make one while it is missing', async () => {
  await withDirectory(async (folder) => {
    const file = join(folder, 'manifest.json');
    await writeFile(join(folder, 'a.graphql'), 'query A { me { id } }');
    const server = await startServer({ DATA_DIR: join(folder, 'data'), TRUSTED_DOCUMENTS: file });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    await stopServer(server);
    const env = { DATA_DIR: join(folder, 'data'), TRUSTED_DOCUMENTS: file, TRUSTED_DOCUMENTS_MODE: 'enforce' };
    expect(await cli(['documents', 'extract', folder, '--out', file], env)).toMatchObject({ code: 0 });
  });
});
