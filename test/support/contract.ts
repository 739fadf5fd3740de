import type { Given } from '../../contract/deployment.ts';
import { demoUsers, seedDemo } from '../../src/features/demo-data.ts';
import { TEST_SECRET } from './databases.ts';
import type { Shop } from './shop.ts';

/** Fills an empty shop with the demo data. */
export async function stock(shop: Shop): Promise<void> {
  await shop.empty();
  const { em, config } = shop.context();
  await seedDemo(em, config.bcryptCost, shop.now());
  // Written behind the services' back, and to be seen at once.
  await shop.sql('select 1');
}

/** Everything that the contract kit can be given about a shop with the demo data. */
export function everythingAbout(shop: Shop, baseUrl = shop.url): Given {
  return {
    baseUrl,
    sessionPrefix: shop.config.sessionPrefix,
    user: credentialsOf('alice'),
    disabledUser: credentialsOf('zoe'),
    signingSecret: TEST_SECRET,
    write: true,
  };
}

/** How a user of the demo data signs in. */
export function credentialsOf(name: string): { username: string; password: string } {
  const { username, password } = demoUsers.find((user) => user.username === name) ?? { username: name, password: '' };
  return { username, password };
}
