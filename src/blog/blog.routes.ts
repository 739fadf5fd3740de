import { z } from 'zod';
import { route, type Routes } from '../kit/route.ts';
import * as users from '../users/user.service.ts';
import * as blog from './blog.service.ts';

const entryBody = z.object({
  title: z.string(),
  body: z.string(),
  published: z.boolean(),
  creator: z.object({ username: z.string(), email: z.string().nullable() }),
});

/** Interface, section 4.1. */
export const blogRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/blog',
    summary: "Published entries of everyone and the caller's own drafts, the latest first.",
    access: 'signed-in',
    success: { status: 200, body: z.array(entryBody) },
    twin: 'query blog',
    handle: async (ctx) =>
      Promise.all(
        (await blog.all(ctx)).map(async ({ title, body, published, creatorPk }) => ({
          title,
          body,
          published,
          creator: await users.byPk(ctx, creatorPk),
        })),
      ),
  }),
];
