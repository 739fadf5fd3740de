import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { expect, test } from '../../test/support/jest.ts';
import { readBundle } from './bundle.ts';
import { comparisonOf } from './comparisons.ts';
import { compareAnswers } from './correspondence.ts';
import { markup, scriptJson } from './markup.ts';

test('a directory without a bundle is not built', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pages-'));
  expect(() => readBundle(directory)).toThrow('`npm run web`');
});

test('texts are escaped in HTML and in scripts', () => {
  expect(markup`<b title="${'"'}">${'<i>'}</b>`.text).toBe('<b title="&quot;">&lt;i&gt;</b>');
  expect(markup`${[markup`<i>`, markup`</i>`]}`.text).toBe('<i></i>');
  expect(scriptJson({ text: '</script>' }).text).toBe(String.raw`{"text":"\u003c/script>"}`);
});

test('an endpoint and its GraphQL equivalent are a comparison', () => {
  const comparison = comparisonOf({
    method: 'GET',
    path: '/note/{pk}',
    summary: 'Get a note',
    access: 'public',
    success: { body: z.object({ pk: z.int(), tags: z.array(z.object({ name: z.string() })) }) },
    graphqlEquivalent: {
      operation: 'query ($pk: ID!) { note(pk: $pk) { pk tags { name } } }',
      variables: { pk: 7 },
      correspondences: [{ rest: '', graphql: 'note' }],
    },
  });
  expect(comparison).toMatchObject({ path: '/note/7', kind: 'read', variables: { pk: 7 } });
  expect(comparison.response.fields.map(({ name }) => name)).toEqual(['pk', 'tags']);
  expect(comparison.operation.fields[0]?.selection?.fields.map(({ text }) => text)).toEqual([
    'pk',
    'tags',
  ]);
});

test('a response and GraphQL data with the same values do not differ', () => {
  const same = [{ rest: '', graphql: 'note' }];
  expect(compareAnswers({ pk: 7 }, { note: { pk: '7' } }, same)).toMatchObject({
    compared: 1,
    ids: 1,
    differences: [],
  });
  expect(compareAnswers({ pk: 7 }, { note: { pk: '8' } }, same).differences).toEqual([
    { at: 'note.pk', rest: '7', graphql: '"8"' },
  ]);
});
