import { z } from 'zod';
import { withContext, type Context } from '../../request/context.ts';
import { jsonArray, route, type Routes } from '../../api/route.ts';
import { userBody } from '../users/user.routes.ts';
import * as users from '../users/user.service.ts';
import * as blog from './blog.service.ts';

const entryBody = z
  .object({
    title: z
      .string()
      .meta({ description: 'The title.', minLength: 1, maxLength: 255, examples: ['Opening day'] }),
    body: z.string().meta({
      description: 'The text.',
      minLength: 1,
      maxLength: 50_000,
      examples: ['The shop is open from nine to five.'],
    }),
    published: z
      .boolean()
      .meta({ description: 'Whether all signed-in users see the entry.', examples: [true] }),
    creator: z
      .object({
        username: userBody.shape.username,
        email: userBody.shape.email.meta({ description: 'The email address.' }),
      })
      .meta({ description: 'The author.' }),
  })
  .meta({ id: 'BlogEntry', description: 'An entry of the blog.' });

/** Interface, section 4.1. */
export const blogRoutes: Routes = () => [
  route({
    method: 'GET',
    path: '/blog',
    summary: 'List blog entries',
    description:
      "Returns the published entries of all users and the caller's own drafts as one JSON array, newest first. The array is streamed " +
      'from the database. Drafts of other users are never returned.',
    access: 'signed-in',
    success: { status: 200, body: z.array(entryBody), stream: true },
    graphqlEquivalent: {
      operation: `query ($first: Int, $after: String) {
  blog(first: $first, after: $after) {
    nodes { title body published creator { username email } }
    pageInfo { hasNextPage endCursor }
  }
}`,
      variables: { first: 100 },
      correspondences: [{ rest: '', graphql: 'blog.nodes', hasMore: 'blog.pageInfo.hasNextPage' }],
    },
    handle: (ctx) => jsonArray(entries(ctx)),
  }),
];

async function* entries(ctx: Context): AsyncGenerator<z.infer<typeof entryBody>[]> {
  for await (const batch of blog.all(ctx)) {
    // New loaders for each batch, so that their caches do not grow.
    const batchCtx = withContext(ctx, { loaders: new Map() });
    yield await Promise.all(
      batch.map(async ({ title, body, published, creatorPk }) => {
        const { username, email } = await users.byPk(batchCtx, creatorPk);
        return { title, body, published, creator: { username, email } };
      }),
    );
  }
}
