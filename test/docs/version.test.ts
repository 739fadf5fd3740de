import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { VERSION } from '../../src/core/version.ts';

test.each([
  ['package-lock.json', /^ {2}"version": "(.+)"/gm],
  ['examples/storefront/package.json', /"version": "(.+)"/g],
  ['openapi.json', /^ {4}"version": "(.+)"/gm],
  ['Dockerfile', /image\.version="(.+)"/g],
  ['deploy/kubernetes/kustomization.yaml', /newTag: (.+)/g],
  ['docs/events.md', /Shopfront\/([\d.]+)/g],
])('%s has the version of package.json', async (file, pattern) => {
  const found = [...(await readFile(file, 'utf8')).matchAll(pattern)].map(([, version]) => version);
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter((version) => version !== VERSION)).toEqual([]);
});

test('the newest release in CHANGELOG.md is the version of package.json, with its date', async () => {
  const headings = (await readFile('CHANGELOG.md', 'utf8')).match(/^## .*/gm) ?? [];
  expect(headings[0]).toBe('## Unreleased');
  expect(headings[1]).toMatch(
    new RegExp(`^## ${VERSION.replaceAll('.', String.raw`\.`)} \\(\\d{4}-\\d\\d-\\d\\d\\)$`),
  );
});
