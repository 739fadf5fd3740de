import { Arg, Args, Ctx, Field, ID, InputType, Query, Resolver } from 'type-graphql';
import { CheckedBy } from '../../api/checked-input.ts';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { AuditEntry } from './audit.entity.ts';
import { auditFilter } from './audit.rules.ts';
import * as audit from './audit.service.ts';

const AuditEntryConnection = connectionType(AuditEntry);

@CheckedBy(auditFilter, 'filter')
@InputType({ description: 'Which entries of the audit trail to list: those that meet every condition given.' })
class AuditEntryFilter {
  @Field(() => String, { nullable: true, description: 'Done by this one: a username, or the name of an operator. Compared exactly.' })
  actor?: string | null;

  @Field(() => String, { nullable: true, description: 'This was done, such as `product.changed`.' })
  action?: string | null;

  @Field(() => ID, { nullable: true, description: 'Done to this one: the global id of a user, a product or an API key.' })
  subject?: string | null;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Done then or later.' })
  since?: unknown;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Done before then.' })
  until?: unknown;
}

@Resolver(() => AuditEntry)
export class AuditEntryResolver {
  @Query(() => AuditEntryConnection, {
    description: 'The audit trail: who did what to accounts and products, the latest first. Needs the scope `audit:read`.',
  })
  async auditEntries(
    @Ctx() ctx: Context,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
    @Arg('filter', () => AuditEntryFilter, { nullable: true, description: 'Which entries.' }) filter?: AuditEntryFilter,
  ): Promise<Connection<AuditEntry>> {
    return new AuditEntryConnection(await audit.page(ctx, args, filter));
  }
}
