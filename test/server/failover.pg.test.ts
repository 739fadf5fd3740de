import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '../support/jest.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { makeCluster, ownedDirectory, prepare, type Cluster } from '../support/postgresql.ts';
import { Shop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);

test('P15 after a server has restarted without its last commits, no response cached before is served, although it has counted as many writes since', async () => {
  const home = await mkdtemp(join(tmpdir(), 'shopfront-failover-'));
  await ownedDirectory(home);
  const cluster = await makeCluster(home);
  const shop = new Shop({ DATABASE_URL: cluster.url });
  try {
    await prepare(cluster, TEST_SECRET, false);
    await cluster.sql(
      `insert into product (name, barcode, price, created_at, updated_at) values ('Desk', '4006381333931', 1, now(), now())`,
    );
    await cluster.stop();
    const copy = join(home, 'copy');
    await execute('cp', ['-a', cluster.dataDir, copy]);
    await cluster.start();
    await shop.start();

    await cluster.sql(`update product set name = 'lost'`);
    await until(
      async () => (await names(shop)).every((name) => name === 'lost'),
      'the cached name',
    );
    await cluster.stop('immediate');
    await rename(cluster.dataDir, `${cluster.dataDir}.lost`);
    await rename(copy, cluster.dataDir);
    await cluster.start();
    await cluster.sql(`update product set name = 'kept'`);
    await until(
      async () => (await names(shop)).every((name) => name === 'kept'),
      'the name on the server that took over',
    );
    expect(await versions(cluster)).toBe(2);
  } finally {
    await shop.stop();
    await cluster.stop('immediate');
    await rm(home, { recursive: true, force: true });
  }
});

/** The product's name in several reads, which may be cached; undefined for a failed read. */
async function names(shop: Shop): Promise<(string | undefined)[]> {
  const read: (string | undefined)[] = [];
  for (let count = 0; count < 5; count++) {
    const { status, body } = await shop.rest('GET', '/api/v1/shop/product/1');
    read.push(status === 200 ? body.name : undefined);
  }
  return read;
}

async function versions(cluster: Cluster): Promise<number> {
  const [row] = await cluster.sql('select sum(writes)::int as version from product_row_count');
  return Number(row?.['version']);
}
