import { expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { command } from '../support/command.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { workerDatabase } from '../support/shop.ts';

test.each(['9', '4', '0', '-1', '17', '31', '9.5', '1e1', 'ten', '10 ', '0x0a', '9999999999'])(
  'W9 a configuration with BCRYPT_COST=%s is rejected, in one line that names the setting',
  (BCRYPT_COST) => {
    const read = () => readConfig({ BCRYPT_COST }, () => TEST_SECRET);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/^Invalid configuration:\n {2}BCRYPT_COST must be [^\n]+$/);
  },
);

test('W1 an operator cannot set more than 72 bytes, nor fewer than 8 characters', async () => {
  for (const password of ['x'.repeat(73), `${'é'.repeat(36)}x`, 'short']) {
    const { code, stderr } = await command(
      ['user', 'create', 'ann'],
      workerDatabase(),
      `${password}\n`,
    );
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/A password must have at (most 72 bytes|least 8 characters)/);
    expect(stderr).not.toContain(password);
  }
});
