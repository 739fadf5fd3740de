import type { DeploymentOptions } from '../../packages/contract/index.ts';
import { demoUsers, seedDemo } from '../../src/features/demo-data.ts';
import { TEST_SECRET } from './databases.ts';
import type { Shop } from './shop.ts';

/** Fills an empty shop with the demo data. */
export async function seedShop(shop: Shop): Promise<void> {
  await shop.empty();
  const { em, config } = shop.context();
  await seedDemo(em, config.bcryptCost, shop.now());
  // Invalidates caches, because the data was written without the services.
  await shop.sql('select 1');
}

/** Everything that the contract kit can know about a shop with the demo data. */
export function fullDeployment(shop: Shop, baseUrl = shop.url): DeploymentOptions {
  return {
    baseUrl,
    sessionPrefix: shop.config.sessionPrefix,
    user: credentialsOf('alice'),
    disabledUser: credentialsOf('zoe'),
    signingSecret: TEST_SECRET,
    write: true,
  };
}

/** The credentials of a demo user. */
export function credentialsOf(name: string): { username: string; password: string } {
  const { username, password } = demoUsers.find((user) => user.username === name) ?? {
    username: name,
    password: '',
  };
  return { username, password };
}
