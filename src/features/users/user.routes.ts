import { z } from 'zod';
import type { Context } from '../../request/context.ts';
import { envelope, envelopeOf, LINK_HEADER, linkHeader } from '../../api/page-envelope.ts';
import { route, type Routes } from '../../api/route.ts';
import { INVALID_PAGE, pageQueryOf } from '../../pagination/offset-page.ts';
import type { User } from './user.entity.ts';
import { MAX_EMAIL, MAX_FULL_NAME, MAX_USERNAME } from './user.rules.ts';
import * as users from './user.service.ts';

const LIST = '/api/users';
/** Users on a page asked for by number (interface, section 8). */
const PAGE_SIZE = 5;

/** A user as REST clients get it (interface, section 2), without the hash. */
export const userBody = z
  .object({
    username: z.string().meta({ description: 'The name to sign in with.', minLength: 1, maxLength: MAX_USERNAME, examples: ['alice'] }),
    email: z
      .string()
      .nullable()
      .meta({
        description: "The email address. Another user's is null without the scope users:read.",
        format: 'email',
        maxLength: MAX_EMAIL,
        examples: ['alice@shop.example'],
      }),
    full_name: z
      .string()
      .nullable()
      .meta({ description: 'The name to show.', minLength: 1, maxLength: MAX_FULL_NAME, examples: ['Alice Archer'] }),
    disabled: z.boolean().meta({ description: 'Whether this user is kept from signing in.', examples: [false] }),
  })
  .meta({ id: 'User', description: 'Someone who can sign in.' });

/** What a twin asks of a user, in the names of the rows. */
export const USER_FIELDS = 'username email full_name: fullName disabled';

/** The user as this caller may see it. */
export function userFor(ctx: Context, user: User): z.input<typeof userBody> {
  return { username: user.username, email: users.visibleEmail(ctx, user), full_name: user.fullName, disabled: user.disabled };
}

/** Interface, section 4.4. */
export const userRoutes: Routes = ({ defaultPageSize }) => [
  route({
    method: 'GET',
    path: LIST,
    summary: 'List users in pages',
    description:
      `Returns users in the order of their creation: by \`page\`, ${PAGE_SIZE} at a time, or by \`limit\` and \`offset\`, but not by both. Without ` +
      `parameters, returns the first ${defaultPageSize}. Every signed-in user may list users; the email addresses of others need the scope \`users:read\`.`,
    access: 'signed-in',
    refusals: [INVALID_PAGE],
    input: { query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: false }) },
    success: { status: 200, body: envelopeOf(userBody), headers: (_ctx, page) => linkHeader(page), documentedHeaders: LINK_HEADER },
    twin: {
      operation: `query ($first: Int, $after: String) {
  users(first: $first, after: $after) {
    nodes { ${USER_FIELDS} }
    totalCount
    pageInfo { hasNextPage endCursor }
  }
}`,
      variables: { first: 100 },
    },
    handle: async (ctx, { query }) => {
      const { items, count } = await users.slice(ctx, query);
      return envelope(ctx, LIST, query, { items: items.map((user) => userFor(ctx, user)), count });
    },
  }),
];
