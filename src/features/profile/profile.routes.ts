import { z } from 'zod';
import { requireCaller } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { jsonArray, route, type Routes } from '../../api/route.ts';
import { USER_FIELDS, userBody, userFor } from '../users/user.routes.ts';
import * as users from '../users/user.service.ts';
import * as profile from './profile.service.ts';

const itemBody = z
  .object({
    item_id: z.string().meta({
      description: "The user's own name for the item.",
      minLength: 1,
      maxLength: 255,
      examples: ['notebook'],
    }),
    owner: userBody.shape.username.meta({ description: 'The username of the owner.' }),
  })
  .meta({ id: 'Item', description: 'An item of a user.' });

const HAS_MORE = 'me.items.pageInfo.hasNextPage';

/** Interface, section 4.1. */
export const profileRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/users/me/',
    summary: 'Get the signed-in user',
    description:
      'Returns the user of the credentials. The password is never returned, not even as a hash.',
    access: 'signed-in',
    success: { status: 200, body: userBody },
    graphqlEquivalent: {
      operation: `{ me { ${USER_FIELDS} } }`,
      correspondences: [{ rest: '', graphql: 'me' }],
    },
    handle: async (ctx) => userFor(ctx, await users.byPk(ctx, requireCaller(ctx).pk)),
  }),
  route({
    method: 'GET',
    path: '/users/me/items/',
    summary: 'List the items of the signed-in user',
    description:
      'Returns all items of the caller as one JSON array, oldest first. The array is streamed from the database. Items of other users are ' +
      'never returned.',
    access: 'signed-in',
    success: { status: 200, body: z.array(itemBody), stream: true },
    graphqlEquivalent: {
      operation: `query ($first: Int, $after: String) {
  me {
    items(first: $first, after: $after) {
      nodes { item_id: itemId owner { username } }
      pageInfo { hasNextPage endCursor }
    }
  }
}`,
      variables: { first: 100 },
      correspondences: [
        { rest: '*.item_id', graphql: 'me.items.nodes.*.item_id', hasMore: HAS_MORE },
        { rest: '*.owner', graphql: 'me.items.nodes.*.owner.username', hasMore: HAS_MORE },
      ],
    },
    handle: (ctx) => jsonArray(items(ctx)),
  }),
];

async function* items(ctx: Context): AsyncGenerator<z.infer<typeof itemBody>[]> {
  const { username } = requireCaller(ctx);
  for await (const batch of profile.myItems(ctx))
    yield batch.map(({ itemId }) => ({ item_id: itemId, owner: username }));
}
