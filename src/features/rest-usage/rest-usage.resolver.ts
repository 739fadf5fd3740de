import { Arg, Ctx, Field, Float, Int, ObjectType, Query, Resolver } from 'type-graphql';
import { z } from 'zod';
import { DateTimeScalar, instant } from '../../api/scalars.ts';
import { check } from '../../core/validation.ts';
import { DEFAULT_PAGE, MAX_PAGE } from '../../pagination/keyset.ts';
import type { Context } from '../../request/context.ts';
import * as usage from './rest-usage.service.ts';

const filter = z.object({ endpoint: z.string().nullish(), since: instant.nullish() });

@ObjectType({
  simpleResolvers: true,
  description: 'Calls of a REST endpoint by a client as one user.',
})
class RestUsageLine implements usage.Line {
  @Field(() => String, { description: 'Method and path template.' })
  endpoint!: string;

  @Field(() => String, { description: 'Name or user agent of the client.' })
  client!: string;

  @Field(() => String, { nullable: true, description: 'The user; null for anonymous calls.' })
  username!: string | null;

  @Field(() => Boolean, { description: 'Whether the endpoint is deprecated.' })
  isDeprecated!: boolean;

  @Field(() => Float, { description: 'Number of calls, a whole number.' })
  calls!: number;

  @Field(() => DateTimeScalar, { description: 'Time of the first call.' })
  firstAt!: Date;

  @Field(() => DateTimeScalar, { description: 'Time of the last call.' })
  lastAt!: Date;
}

@Resolver(() => RestUsageLine)
export class RestUsageResolver {
  @Query(() => [RestUsageLine], {
    description:
      'Clients of the REST API, for the removal of a version: the most calls first. Requires the scope `users:read`.',
  })
  restUsage(
    @Ctx() ctx: Context,
    @Arg('endpoint', () => String, {
      nullable: true,
      description: 'Only endpoints that contain this text, such as `/api/v1/`.',
    })
    endpoint: string | null | undefined,
    @Arg('since', () => DateTimeScalar, {
      nullable: true,
      description: 'Only clients that have called since.',
    })
    since: unknown,
    @Arg('first', () => Int, {
      defaultValue: DEFAULT_PAGE,
      description: `Number of lines, 1 to ${MAX_PAGE}.`,
    })
    first: number,
  ): Promise<RestUsageLine[]> {
    const given = check(filter, { endpoint, since });
    return usage.page(ctx, {
      endpoint: given.endpoint ?? undefined,
      since: given.since ?? undefined,
      limit: first,
    });
  }
}
