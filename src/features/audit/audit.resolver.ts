import { Arg, Args, Ctx, Field, ID, InputType, Query, Resolver } from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { AuditEntry } from './audit.entity.ts';
import * as audit from './audit.service.ts';

const AuditEntryConnection = connectionType(AuditEntry);

@InputType({ description: 'Filter of audit entries. An entry must meet all given conditions.' })
class AuditEntryFilter {
  @Field(() => String, {
    nullable: true,
    description: 'Actor: a username, or the name of an operator. Exact match.',
  })
  actor?: string | null;

  @Field(() => String, { nullable: true, description: 'Action, such as `product.changed`.' })
  action?: string | null;

  @Field(() => ID, {
    nullable: true,
    description: 'Subject: the global id of a user, a product or an API key.',
  })
  subject?: string | null;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Earliest time, inclusive.' })
  since?: unknown;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Latest time, exclusive.' })
  until?: unknown;
}

@Resolver(() => AuditEntry)
export class AuditEntryResolver {
  @Query(() => AuditEntryConnection, {
    description:
      'The audit trail of accounts and products, newest first. Requires the scope `audit:read`.',
  })
  async auditEntries(
    @Ctx() ctx: Context,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
    @Arg('filter', () => AuditEntryFilter, { nullable: true, description: 'Filter of entries.' })
    filter?: AuditEntryFilter,
  ): Promise<Connection<AuditEntry>> {
    return new AuditEntryConnection(await audit.page(ctx, args, filter));
  }
}
