import {
  Arg,
  Args,
  Ctx,
  Field,
  FieldResolver,
  ID,
  InputType,
  Mutation,
  Query,
  Resolver,
  Root,
} from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { BlogEntry } from './blog-entry.entity.ts';
import * as blog from './blog.service.ts';

const BlogEntryConnection = connectionType(BlogEntry);

const ENTRY_ID = { description: 'The id of the entry.' };

@InputType({ description: 'A new blog entry.' })
export class BlogEntryInput {
  @Field(() => String, {
    description: 'The title: 1 to 255 characters after trimming, no control characters.',
  })
  title!: string;

  @Field(() => String, { description: 'The text: 1 to 50,000 characters.' })
  body!: string;

  @Field(() => Boolean, {
    defaultValue: false,
    description: 'Whether to publish the entry at once to all signed-in users.',
  })
  published!: boolean;
}

@InputType({ description: 'Changes to a blog entry. Omitted fields keep their value.' })
export class BlogEntryPatch {
  @Field(() => String, { nullable: true, description: 'The new title.' })
  title?: string;

  @Field(() => String, { nullable: true, description: 'The new text.' })
  body?: string;

  @Field(() => Boolean, {
    nullable: true,
    description: 'True publishes the entry; false makes it a draft again.',
  })
  published?: boolean;
}

@Resolver(() => User)
export class UserBlogResolver {
  @FieldResolver(() => BlogEntryConnection, {
    description: "The user's published entries and your own drafts, newest first.",
  })
  async blog(
    @Ctx() ctx: Context,
    @Root() user: User,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<BlogEntry>> {
    return new BlogEntryConnection(await blog.pageOf(ctx, user.pk, args));
  }
}

@Resolver(() => BlogEntry)
export class BlogEntryResolver {
  @FieldResolver(() => User, { description: 'The author, with the email address.' })
  creator(@Ctx() ctx: Context, @Root() entry: BlogEntry): Promise<User> {
    return users.author(ctx, entry.creatorPk);
  }

  @Query(() => BlogEntryConnection, {
    description: 'Published entries and your own drafts, newest first. Requires authentication.',
  })
  async blog(
    @Ctx() ctx: Context,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<BlogEntry>> {
    return new BlogEntryConnection(await blog.page(ctx, args));
  }

  @Mutation(() => BlogEntry, { description: 'Creates a blog entry. Needs the scope `blog:write`.' })
  createBlogEntry(
    @Ctx() ctx: Context,
    @Arg('input', () => BlogEntryInput, { description: 'The entry to create.' })
    input: BlogEntryInput,
  ): Promise<BlogEntry> {
    return blog.create(ctx, input);
  }

  @Mutation(() => BlogEntry, {
    description: 'Changes or publishes a blog entry of yours. Needs the scope `blog:write`.',
  })
  updateBlogEntry(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, ENTRY_ID) id: string,
    @Arg('input', () => BlogEntryPatch, { description: 'The changes.' }) input: BlogEntryPatch,
  ): Promise<BlogEntry> {
    return blog.update(ctx, id, input);
  }

  @Mutation(() => BlogEntry, {
    description: 'Deletes a blog entry of yours and returns it. Needs the scope `blog:write`.',
  })
  deleteBlogEntry(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, ENTRY_ID) id: string,
  ): Promise<BlogEntry> {
    return blog.remove(ctx, id);
  }
}
