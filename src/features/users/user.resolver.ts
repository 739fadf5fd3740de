import { Args, Ctx, FieldResolver, Query, Resolver, Root } from 'type-graphql';
import { usableScopes } from '../../request/access.ts';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { User } from './user.entity.ts';
import * as users from './user.service.ts';

const UserConnection = connectionType(User);

@Resolver(() => User)
export class UserResolver {
  @Query(() => User, { nullable: true, description: 'The signed-in user; null for a caller without credentials.' })
  me(@Ctx() ctx: Context): Promise<User | null> {
    return users.me(ctx);
  }

  @Query(() => [String], {
    name: 'scopes',
    description:
      'The scopes that this request may use: those that the user holds (`me`), as far as the session, the token or the API key is not narrowed. Without credentials, those that the server gives to everyone.',
  })
  usableScopes(@Ctx() ctx: Context): string[] {
    return usableScopes(ctx);
  }

  @Query(() => UserConnection, { description: 'All users, in pages by cursor. For callers who are signed in.' })
  async users(@Ctx() ctx: Context, @Args(() => ConnectionArgs) args: ConnectionArgs): Promise<Connection<User>> {
    return new UserConnection(await users.page(ctx, args));
  }

  @FieldResolver(() => String, { nullable: true, description: "The email address. Another user's is null without the scope `users:read`." })
  email(@Ctx() ctx: Context, @Root() user: User): string | null {
    return users.visibleEmail(ctx, user);
  }

  @FieldResolver(() => [String], { description: "What the user may do. Another user's are empty without the scope `users:read`." })
  scopes(@Ctx() ctx: Context, @Root() user: User): string[] {
    return users.visibleScopes(ctx, user);
  }
}
