import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

const ID = /^([A-Z]\d+) /;

/**
 * Records which attacks of the catalogue (test/attacks/rows.json) passed in which files, on which
 * database. Keeps the results of files that did not run. .ci/attack-table.js writes the table from
 * it.
 */
export default class AttackReporter {
  onRunComplete(_contexts, { testResults }) {
    const path = `dist/attacks/${process.env.TEST_DATABASE_URL ? 'postgresql' : 'embedded'}.json`;
    const files = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    for (const { testFilePath, testResults: tests } of testResults) {
      const rows = {};
      for (const { title, status } of tests) {
        const [, id] = ID.exec(title) ?? [];
        if (id === undefined || status === 'pending') continue;
        const found = (rows[id] ??= { passed: 0, failed: 0 });
        found[status === 'passed' ? 'passed' : 'failed']++;
      }
      files[
        relative(process.cwd(), testFilePath)
          .replace(/^dist\//, '')
          .replace(/\.js$/, '.ts')
      ] = rows;
    }
    mkdirSync('dist/attacks', { recursive: true });
    writeFileSync(path, JSON.stringify(files, null, 2));
  }
}
