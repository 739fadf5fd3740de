import { Arg, Args, Ctx, Field, FieldResolver, ID, InputType, Mutation, Query, Resolver, Root } from 'type-graphql';
import { CheckedBy } from '../../api/checked-input.ts';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import { BlogEntry } from './blog-entry.entity.ts';
import { entryPatch, newEntry } from './blog.rules.ts';
import * as blog from './blog.service.ts';

const BlogEntryConnection = connectionType(BlogEntry);

const ENTRY_ID = { description: 'The id of the entry.' };

@CheckedBy(newEntry)
@InputType({ description: 'A new blog entry.' })
export class BlogEntryInput {
  @Field(() => String, { description: 'The title: 1 to 255 characters once trimmed, no control characters.' })
  title!: string;

  @Field(() => String, { description: 'The text: 1 to 50,000 characters.' })
  body!: string;

  @Field(() => Boolean, { defaultValue: false, description: 'Whether everyone who is signed in sees it at once.' })
  published!: boolean;
}

@CheckedBy(entryPatch)
@InputType({ description: 'What to change of a blog entry; what is left out stays.' })
export class BlogEntryPatch {
  @Field(() => String, { nullable: true, description: 'The new title.' })
  title?: string;

  @Field(() => String, { nullable: true, description: 'The new text.' })
  body?: string;

  @Field(() => Boolean, { nullable: true, description: 'True publishes, false makes it a draft again.' })
  published?: boolean;
}

@Resolver(() => User)
export class UserBlogResolver {
  @FieldResolver(() => BlogEntryConnection, {
    description: 'What the user wrote, the latest first: what is published, and your own drafts.',
  })
  async blog(@Ctx() ctx: Context, @Root() user: User, @Args(() => ConnectionArgs) args: ConnectionArgs): Promise<Connection<BlogEntry>> {
    return new BlogEntryConnection(await blog.pageOf(ctx, user.pk, args));
  }
}

@Resolver(() => BlogEntry)
export class BlogEntryResolver {
  @FieldResolver(() => User, { description: 'Who wrote it. Here the email is shown.' })
  creator(@Ctx() ctx: Context, @Root() entry: BlogEntry): Promise<User> {
    return users.author(ctx, entry.creatorPk);
  }

  @Query(() => BlogEntryConnection, {
    description: 'The blog, the latest first: what is published, and your own drafts. For callers who are signed in.',
  })
  async blog(@Ctx() ctx: Context, @Args(() => ConnectionArgs) args: ConnectionArgs): Promise<Connection<BlogEntry>> {
    return new BlogEntryConnection(await blog.page(ctx, args));
  }

  @Mutation(() => BlogEntry, { description: 'Writes a blog entry. Needs the scope `blog:write`.' })
  createBlogEntry(
    @Ctx() ctx: Context,
    @Arg('input', () => BlogEntryInput, { description: 'What it says.' }) input: BlogEntryInput,
  ): Promise<BlogEntry> {
    return blog.create(ctx, input);
  }

  @Mutation(() => BlogEntry, { description: 'Changes a blog entry, and publishes it. Its creator alone may, with the scope `blog:write`.' })
  updateBlogEntry(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, ENTRY_ID) id: string,
    @Arg('input', () => BlogEntryPatch, { description: 'What to change.' }) input: BlogEntryPatch,
  ): Promise<BlogEntry> {
    return blog.update(ctx, id, input);
  }

  @Mutation(() => BlogEntry, {
    description: 'Deletes a blog entry and answers what it was. Its creator alone may, with the scope `blog:write`.',
  })
  deleteBlogEntry(@Ctx() ctx: Context, @Arg('id', () => ID, ENTRY_ID) id: string): Promise<BlogEntry> {
    return blog.remove(ctx, id);
  }
}
