import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

const ID = /^([A-Z]\d+) /;

/**
 * Notes which rows of the attack catalogue (test/attacks/rows.json) passed in which files, on which database. A run of some files
 * leaves what is known of the others. .ci/attack-table.js makes the table of it.
 */
export default class AttackReporter {
  onRunComplete(_contexts, { testResults }) {
    // A run without the shortcuts counts for no database.
    if (process.env.TEST_SHORTCUTS) return;
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
