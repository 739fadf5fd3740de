import { expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';

test.each(['9', '4', '0', '-1', '17', '31', '9.5', '1e1', 'ten', '0x0a', '9999999999'])(
  'W9 a configuration with BCRYPT_COST=%s is rejected, in one line that names the setting',
  (BCRYPT_COST) => {
    const read = () => readConfig({ BCRYPT_COST }, () => TEST_SECRET);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/^Invalid configuration:\n {2}BCRYPT_COST must be [^\n]+$/);
  },
);
