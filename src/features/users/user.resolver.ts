import { Args, Ctx, FieldResolver, Query, Resolver, Root } from 'type-graphql';
import { usableScopes } from '../../request/access.ts';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { User } from './user.entity.ts';
import * as users from './user.service.ts';

const UserConnection = connectionType(User);

@Resolver(() => User)
export class UserResolver {
  @Query(() => User, {
    nullable: true,
    description: 'The signed-in user; null for a caller without credentials.',
  })
  me(@Ctx() ctx: Context): Promise<User | null> {
    return users.me(ctx);
  }

  @Query(() => [String], {
    name: 'scopes',
    description:
      'The scopes of this request: the scopes of the user (`me`), limited by the session, the token or the API key. Without credentials, the scopes that the server grants to everyone.',
  })
  usableScopes(@Ctx() ctx: Context): string[] {
    return usableScopes(ctx);
  }

  @Query(() => UserConnection, {
    description: 'All users, with cursor pagination. Requires a signed-in caller.',
  })
  async users(
    @Ctx() ctx: Context,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<User>> {
    return new UserConnection(await users.page(ctx, args));
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: 'The email address. For other users, null without the scope `users:read`.',
  })
  email(@Ctx() ctx: Context, @Root() user: User): string | null {
    return users.visibleEmail(ctx, user);
  }

  @FieldResolver(() => [String], {
    description: 'The scopes of the user. For other users, empty without the scope `users:read`.',
  })
  scopes(@Ctx() ctx: Context, @Root() user: User): string[] {
    return users.visibleScopes(ctx, user);
  }
}
