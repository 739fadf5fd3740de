import { expect, test } from '../support/jest.ts';
import pino from 'pino';
import { capabilitiesOf, connectionOptions } from '../../src/database/connection-options.ts';
import { Replica } from '../../src/database/replica.ts';
import { sql } from '../../src/database/sql.ts';
import { visibleError } from '../../src/http/http-error.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

test('without the primary, a read by a connection to a server whose lag is unknown is UNAVAILABLE', async () => {
  const { config, database } = shop;
  const options = {
    config: connectionOptions(config, config.databaseUrl ?? ''),
    capabilities: capabilitiesOf(config),
    maxLagMs: 1000,
  };
  const log = pino({ level: 'silent' });
  const replica = new Replica(
    'replica',
    { ...options, config: { ...options.config, max: 1 } },
    database.statements,
    log,
  );
  try {
    const error: unknown = await replica.withoutPrimary
      .read(sql`select 1`)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(visibleError(error)).toMatchObject({ code: 'UNAVAILABLE' });
  } finally {
    await replica.close();
  }
});
