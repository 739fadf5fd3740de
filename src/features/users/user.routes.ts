import { z } from 'zod';
import type { Context } from '../../request/context.ts';
import {
  envelope,
  envelopeCorrespondences,
  envelopeOf,
  INVALID_PAGE,
  linkHeader,
  pageQueryOf,
} from '../../api/offset-page.ts';
import { route, type Routes } from '../../api/route.ts';

import type { User } from './user.entity.ts';
import { MAX_EMAIL, MAX_FULL_NAME, MAX_USERNAME } from './user.rules.ts';
import * as users from './user.service.ts';

const LIST = '/api/users';
/** Number of users on a page by number (interface, section 8). */
const PAGE_SIZE = 5;

/** A user in REST responses (interface, section 2), without the hash. */
export const userBody = z
  .object({
    username: z.string().meta({
      description: 'The username for the login.',
      minLength: 1,
      maxLength: MAX_USERNAME,
      examples: ['alice'],
    }),
    email: z
      .string()
      .nullable()
      .meta({
        description: 'The email address. For other users, null without the scope users:read.',
        format: 'email',
        maxLength: MAX_EMAIL,
        examples: ['alice@shop.example'],
      }),
    full_name: z
      .string()
      .nullable()
      .meta({
        description: 'The display name.',
        minLength: 1,
        maxLength: MAX_FULL_NAME,
        examples: ['Alice Archer'],
      }),
    disabled: z
      .boolean()
      .meta({ description: 'Whether the user is disabled and cannot sign in.', examples: [false] }),
  })
  .meta({ id: 'User', description: 'A user who can sign in.' });

/** Fields of a user for GraphQL equivalents, aliased to the REST names. */
export const USER_FIELDS = 'username email full_name: fullName disabled';

/** Returns the user as this caller may see it. */
export function userFor(ctx: Context, user: User): z.input<typeof userBody> {
  return {
    username: user.username,
    email: users.visibleEmail(ctx, user),
    full_name: user.fullName,
    disabled: user.disabled,
  };
}

/** Interface, section 4.4. */
export const userRoutes: Routes = ({ defaultPageSize }) => [
  route({
    method: 'GET',
    path: LIST,
    summary: 'List users in pages',
    description:
      `Returns users in the order of their creation, either by \`page\`, ${PAGE_SIZE} at a time, or by \`limit\` and \`offset\`. Without ` +
      `parameters, returns the first ${defaultPageSize}. Every signed-in user may list users; the email addresses of other users require the scope \`users:read\`.`,
    access: 'signed-in',
    errors: [INVALID_PAGE],
    input: {
      query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: false }),
    },
    success: {
      status: 200,
      body: envelopeOf(userBody),
      headers: (_ctx, page) => linkHeader(page),
    },
    graphqlEquivalent: {
      operation: `query ($first: Int, $after: String) {
  users(first: $first, after: $after) {
    nodes { ${USER_FIELDS} }
    totalCount
    pageInfo { hasNextPage endCursor }
  }
}`,
      variables: { first: defaultPageSize },
      correspondences: envelopeCorrespondences('users'),
    },
    handle: async (ctx, { query }) => {
      const { items, count } = await users.offsetPage(ctx, query);
      return envelope(ctx, LIST, query, { items: items.map((user) => userFor(ctx, user)), count });
    },
  }),
];
