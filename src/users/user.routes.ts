import { z } from 'zod';
import type { Context } from '../kit/context.ts';
import { envelope, envelopeOf, linkHeader } from '../kit/page-envelope.ts';
import { route, type Routes } from '../kit/route.ts';
import { pageQueryOf } from '../kit/slice.ts';
import type { User } from './user.entity.ts';
import * as users from './user.service.ts';

const LIST = '/api/users';
/** Users on a page asked for by number (interface, section 8). */
const PAGE_SIZE = 5;

/** A user as REST clients get it (interface, section 2), without the hash. */
export const userBody = z.object({
  username: z.string(),
  email: z.string().nullable(),
  full_name: z.string().nullable(),
  disabled: z.boolean(),
});

/** The user as this caller may see it. */
export function userFor(ctx: Context, user: User): z.input<typeof userBody> {
  return { username: user.username, email: users.visibleEmail(ctx, user), full_name: user.fullName, disabled: user.disabled };
}

/** Interface, section 4.4. */
export const userRoutes: Routes = ({ defaultPageSize }) => [
  route({
    method: 'GET',
    path: LIST,
    summary: 'Users in pages: by number, or by limit and offset.',
    access: 'signed-in',
    input: { query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: false }) },
    success: { status: 200, body: envelopeOf(userBody), headers: (_ctx, page) => linkHeader(page) },
    twin: 'query users',
    handle: async (ctx, { query }) => {
      const { items, count } = await users.slice(ctx, query);
      return envelope(ctx, LIST, query, { items: items.map((user) => userFor(ctx, user)), count });
    },
  }),
];
