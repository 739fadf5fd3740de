import { expect, jest, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/kit/config.ts';
import { command } from '../support/command.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

// Each starts processes with a database of their own.
jest.setTimeout(120_000);

test.each(['9', '4', '0', '-1', '17', '31', '9.5', '1e1', 'ten', '10 ', '0x0a', '9999999999'])(
  'W9 a configuration with BCRYPT_COST=%s is refused, in one line that names the setting',
  (BCRYPT_COST) => {
    const read = () => readConfig({ BCRYPT_COST }, () => TEST_SECRET);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/^The configuration cannot be used:\n {2}BCRYPT_COST must be [^\n]+$/);
  },
);

test('W9 a start says in the log what a hash costs, and how long it takes here', async () => {
  await withDataDir(async (DATA_DIR) => {
    const costs = new Map<number, number>();
    for (const cost of [10, 14]) {
      const server = await startServer({ DATA_DIR, LOG_LEVEL: 'info', BCRYPT_COST: String(cost) });
      // It is measured while requests are answered already.
      await new Promise<void>((done) => {
        let logged = '';
        server.child.stderr?.on('data', (piece: Buffer) => (logged += piece.toString()).includes('auth.hash_cost') && done());
      });
      const { stderr, code } = await stopServer(server);
      const lines = stderr.split('\n').filter((line) => line.includes('"event":"auth.hash_cost"'));
      expect([code, lines.length]).toEqual([0, 1]);
      const line = JSON.parse(String(lines[0])) as { cost: number; ms: number; time: string };
      expect(line).toMatchObject({ cost, ms: expect.any(Number), time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) });
      costs.set(cost, line.ms);
    }
    // Each step doubles the work: measured, and not only said. Four of them are far from what a busy machine makes of one.
    expect(costs.get(14)).toBeGreaterThan(2 * Number(costs.get(10)));
  });
});

test('W1 an operator cannot set more than 72 bytes, nor fewer than 8 characters', async () => {
  await withDataDir(async (DATA_DIR) => {
    for (const password of ['x'.repeat(73), `${'é'.repeat(36)}x`, 'short']) {
      const { code, stderr } = await command(['user', 'create', 'ann'], { DATA_DIR }, `${password}\n`);
      expect(code).not.toBe(0);
      expect(stderr).toMatch(/A password has at (most 72 bytes|least 8 characters)/);
      expect(stderr).not.toContain(password);
    }
  });
});
