import { z } from 'zod';
import { route, type Routes } from '../kit/route.ts';
import * as users from '../users/user.service.ts';
import * as blog from './blog.service.ts';

const entryBody = z
  .object({
    title: z.string().meta({ description: 'The title.', examples: ['Opening day'] }),
    body: z.string().meta({ description: 'The text.', examples: ['The doors are open, both of them.'] }),
    published: z.boolean().meta({ description: 'Whether everyone who is signed in sees it.', examples: [true] }),
    creator: z
      .object({
        username: z.string().meta({ description: 'Their name.', examples: ['alice'] }),
        email: z
          .string()
          .nullable()
          .meta({ description: 'Their email address.', examples: ['alice@shop.example'] }),
      })
      .meta({ description: 'Who wrote it.' }),
  })
  .meta({ id: 'BlogEntry', description: 'An entry of the blog.' });

/** Interface, section 4.1. */
export const blogRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/blog',
    summary: "Published entries of everyone and the caller's own drafts, the latest first.",
    access: 'signed-in',
    success: { status: 200, body: z.array(entryBody) },
    twin: {
      operation: `query ($first: Int, $after: String) {
  blog(first: $first, after: $after) {
    nodes { title body published creator { username email } }
    pageInfo { hasNextPage endCursor }
  }
}`,
      variables: { first: 100 },
    },
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
