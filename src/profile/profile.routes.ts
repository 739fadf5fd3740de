import { z } from 'zod';
import { requireCaller } from '../kit/access.ts';
import { route, type Routes } from '../kit/route.ts';
import { USER_FIELDS, userBody, userFor } from '../users/user.routes.ts';
import * as profile from './profile.service.ts';

const itemBody = z
  .object({
    item_id: z.string().meta({ description: "The user's own name for it.", examples: ['notebook'] }),
    owner: z.string().meta({ description: 'The name of the user whose it is.', examples: ['alice'] }),
  })
  .meta({ id: 'Item', description: 'Something that a user has.' });

/** Interface, section 4.1. */
export const profileRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/users/me/',
    summary: 'The signed-in user.',
    access: 'signed-in',
    success: { status: 200, body: userBody },
    twin: { operation: `{ me { ${USER_FIELDS} } }` },
    handle: async (ctx) => userFor(ctx, await profile.me(ctx)),
  }),
  route({
    method: 'GET',
    path: '/users/me/items/',
    summary: "The signed-in user's items.",
    access: 'signed-in',
    success: { status: 200, body: z.array(itemBody) },
    twin: {
      operation: `query ($first: Int, $after: String) {
  me {
    items(first: $first, after: $after) {
      nodes { item_id: itemId owner { username } }
      pageInfo { hasNextPage endCursor }
    }
  }
}`,
      variables: { first: 100 },
    },
    handle: async (ctx) => {
      const { username } = requireCaller(ctx);
      return (await profile.myItems(ctx)).map(({ itemId }) => ({ item_id: itemId, owner: username }));
    },
  }),
];
