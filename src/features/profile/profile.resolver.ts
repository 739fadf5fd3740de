import { Arg, Args, Ctx, FieldResolver, Mutation, Resolver, Root } from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { Item } from './item.entity.ts';
import * as profile from './profile.service.ts';

const ItemConnection = connectionType(Item);

@Resolver(() => User)
export class UserItemsResolver {
  @FieldResolver(() => ItemConnection, {
    description: "The user's items. Empty for another user without the scope `users:read`.",
  })
  async items(
    @Ctx() ctx: Context,
    @Root() user: User,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<Item>> {
    return new ItemConnection(await profile.pageOf(ctx, user.pk, args));
  }
}

@Resolver(() => Item)
export class ItemResolver {
  @FieldResolver(() => User, { description: 'The user who owns the item.' })
  owner(@Ctx() ctx: Context, @Root() item: Item): Promise<User> {
    return users.byPk(ctx, item.ownerPk);
  }

  @Mutation(() => Item, {
    description: 'Adds an item to your own. Credentials narrowed to read-only scopes are rejected.',
  })
  addItem(
    @Ctx() ctx: Context,
    @Arg('itemId', () => String, { description: 'Your name for the item.' }) itemId: string,
  ): Promise<Item> {
    return profile.addItem(ctx, itemId);
  }

  @Mutation(() => Item, {
    description:
      'Removes an item from your own and returns it. Credentials narrowed to read-only scopes are rejected.',
  })
  removeItem(
    @Ctx() ctx: Context,
    @Arg('itemId', () => String, { description: 'Your name for the item.' }) itemId: string,
  ): Promise<Item> {
    return profile.removeItem(ctx, itemId);
  }
}
