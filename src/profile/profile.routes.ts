import { z } from 'zod';
import { requireCaller } from '../kit/access.ts';
import { route, type Routes } from '../kit/route.ts';
import { userBody, userFor } from '../users/user.routes.ts';
import * as profile from './profile.service.ts';

/** Interface, section 4.1. */
export const profileRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/users/me/',
    summary: 'The signed-in user.',
    access: 'signed-in',
    success: { status: 200, body: userBody },
    twin: 'query me',
    handle: async (ctx) => userFor(ctx, await profile.me(ctx)),
  }),
  route({
    method: 'GET',
    path: '/users/me/items/',
    summary: "The signed-in user's items.",
    access: 'signed-in',
    success: { status: 200, body: z.array(z.object({ item_id: z.string(), owner: z.string() })) },
    twin: 'query me { items }',
    handle: async (ctx) => {
      const { username } = requireCaller(ctx);
      return (await profile.myItems(ctx)).map(({ itemId }) => ({ item_id: itemId, owner: username }));
    },
  }),
];
