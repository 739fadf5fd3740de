import { Arg, Args, Ctx, Field, FieldResolver, ID, InputType, Mutation, ObjectType, Resolver, Root } from 'type-graphql';
import { CheckedBy } from '../../api/checked-input.ts';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { IgnoresIdempotencyKey } from '../../api/ignores-idempotency-key.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import type { Scope } from '../../core/scopes.ts';
import { User } from '../users/user.entity.ts';
import { ApiKey } from './api-key.entity.ts';
import { newApiKeyAt } from './api-key.rules.ts';
import * as apiKeys from './api-key.service.ts';

const ApiKeyConnection = connectionType(ApiKey);

@CheckedBy(newApiKeyAt)
@InputType({ description: 'A new API key.' })
class ApiKeyInput {
  @Field(() => String, { description: 'What it is for: one line of 1 to 100 characters.' })
  name!: string;

  @Field(() => [String], { description: 'What it may do, out of the scopes that the caller holds.' })
  scopes!: Scope[];

  @Field(() => DateTimeScalar, {
    nullable: true,
    description: 'When it stops being good, within 366 days; after 90 days where none is given.',
  })
  expiresAt?: unknown;
}

@ObjectType({ simpleResolvers: true, description: 'A new API key. The key is shown here once.' })
class ApiKeyPayload {
  @Field(() => String, { description: 'For the header `Authorization: Bearer`.' })
  key!: string;

  @Field(() => ApiKey, { description: 'What it is known by from now on.' })
  apiKey!: ApiKey;
}

@Resolver(() => ApiKey)
export class ApiKeyResolver {
  @IgnoresIdempotencyKey()
  @Mutation(() => ApiKeyPayload, { description: 'Makes an API key, with which a machine calls in the name of the caller.' })
  createApiKey(
    @Ctx() ctx: Context,
    @Arg('input', () => ApiKeyInput, { description: 'What it is for, and what it may do.' }) input: ApiKeyInput,
  ): Promise<ApiKeyPayload> {
    return apiKeys.create(ctx, input);
  }

  @Mutation(() => ApiKey, { description: "Ends one of the caller's own API keys at once, and answers what it was." })
  revokeApiKey(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, { description: 'The id of the API key, as `apiKeys` lists it.' }) id: string,
  ): Promise<ApiKey> {
    return apiKeys.revoke(ctx, id);
  }
}

@Resolver(() => User)
export class UserApiKeysResolver {
  @FieldResolver(() => ApiKeyConnection, {
    description:
      "The user's good API keys, the latest first. Another user's are empty, whoever asks, and so are all of them to an API key.",
  })
  async apiKeys(@Ctx() ctx: Context, @Root() user: User, @Args(() => ConnectionArgs) args: ConnectionArgs): Promise<Connection<ApiKey>> {
    return new ApiKeyConnection(await apiKeys.pageOf(ctx, user.pk, args));
  }
}
