import {
  Arg,
  Ctx,
  Field,
  Float,
  Int,
  ObjectType,
  Query,
  registerEnumType,
  Resolver,
} from 'type-graphql';
import type { Context } from '../../request/context.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { Weight } from '../../api/weight.ts';
import { DEFAULT_PAGE, MAX_PAGE } from '../../pagination/keyset.ts';
import * as usage from './usage-trends.service.ts';

enum RestUsageGrouping {
  ENDPOINT = 'endpoint',
  CLIENT = 'client',
}

registerEnumType(RestUsageGrouping, {
  name: 'RestUsageGrouping',
  description: 'How calls of the REST API are grouped.',
  valuesConfig: {
    ENDPOINT: { description: 'One line per endpoint.' },
    CLIENT: { description: 'One line per client.' },
  },
});

registerEnumType(usage.RestUsageTrend, {
  name: 'RestUsageTrend',
  description: 'The calls in the last 14 days against those in the 14 days before.',
  valuesConfig: {
    GROWING: { description: 'At least 4/3 of the earlier calls, or the first calls.' },
    STEADY: { description: 'Between `GROWING` and `DWINDLING`.' },
    DWINDLING: { description: 'At most 3/4 of the earlier calls.' },
    GONE: { description: 'No calls in the last 14 days.' },
  },
});

@ObjectType({
  simpleResolvers: true,
  description: 'Calls of a REST endpoint by a client in the last 90 days.',
})
class RestUsageLine implements usage.TrendLine {
  @Field(() => String, {
    nullable: true,
    description: 'Method and path template; null if grouped by client.',
  })
  endpoint!: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'Name or user agent of the client; null if grouped by endpoint.',
  })
  client!: string | null;

  @Field(() => Boolean, { description: 'Whether a called endpoint is deprecated.' })
  deprecated!: boolean;

  @Weight(1)
  @Field(() => [String], {
    description:
      'Users with whose credentials the client called, at most 10, in alphabetical order.',
  })
  usernames!: string[];

  @Field(() => Float, { description: 'Number of calls, a whole number.' })
  calls!: number;

  @Weight(5)
  @Field(() => [Float], {
    description:
      'Number of calls on each of the 90 days (UTC), the oldest first; the last is today.',
  })
  days!: number[];

  @Field(() => Float, { description: 'Number of calls in the last 14 days, today included.' })
  recentCalls!: number;

  @Field(() => Float, { description: 'Number of calls in the 14 days before.' })
  earlierCalls!: number;

  @Field(() => usage.RestUsageTrend, { description: 'How the number of calls changes.' })
  trend!: usage.RestUsageTrend;

  @Field(() => DateTimeScalar, {
    description: 'Time of the last call; the start of its day (UTC) if only the day is known.',
  })
  lastAt!: Date;
}

@ObjectType({ simpleResolvers: true, description: 'Clients of the REST API in the last 90 days.' })
class RestUsage implements usage.Trends {
  @Field(() => [RestUsageLine], {
    description: 'A part of the lines: those with recent calls first, then the most calls first.',
  })
  lines!: RestUsageLine[];

  @Field(() => Int, { description: 'Number of all lines.' })
  totalCount!: number;

  @Field(() => Int, { description: 'Number of lines with calls in the last 14 days.' })
  activeCount!: number;

  @Field(() => String, { description: 'First day (UTC) of `days`, such as `2027-01-31`.' })
  firstDay!: string;

  @Field(() => [String], {
    description: 'Beginnings of the deprecated paths, such as `/api/v1/`.',
  })
  deprecatedPaths!: string[];
}

@Resolver(() => RestUsage)
export class RestUsageResolver {
  @Query(() => RestUsage, {
    description:
      'Calls of the REST API by endpoint, client and day, for the removal of a version. Requires the scope `users:read`.',
  })
  restUsage(
    @Ctx() ctx: Context,
    @Arg('by', () => RestUsageGrouping, {
      nullable: true,
      description: 'How calls are grouped. Default: one line per endpoint and client.',
    })
    by: RestUsageGrouping | null | undefined,
    @Arg('deprecatedOnly', () => Boolean, {
      defaultValue: false,
      description: 'Whether to count only calls of deprecated endpoints.',
    })
    deprecatedOnly: boolean,
    @Arg('first', () => Int, {
      defaultValue: DEFAULT_PAGE,
      description: `Number of lines, 1 to ${MAX_PAGE}.`,
    })
    first: number,
    @Arg('skip', () => Int, { defaultValue: 0, description: 'Number of lines to skip.' })
    skip: number,
  ): Promise<RestUsage> {
    return usage.page(ctx, { by: by ?? undefined, deprecatedOnly, first, skip });
  }
}
