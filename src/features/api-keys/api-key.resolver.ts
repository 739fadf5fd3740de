import {
  Arg,
  Args,
  Ctx,
  Field,
  FieldResolver,
  ID,
  InputType,
  Mutation,
  ObjectType,
  Resolver,
  Root,
} from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { IgnoresIdempotencyKey } from '../../api/ignores-idempotency-key.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import type { Scope } from '../../core/scopes.ts';
import { User } from '../users/user.entity.ts';
import { ApiKey } from './api-key.entity.ts';
import * as apiKeys from './api-key.service.ts';

const ApiKeyConnection = connectionType(ApiKey);

@InputType({ description: 'A new API key.' })
class ApiKeyInput {
  @Field(() => String, { description: 'The purpose of the key: one line of 1 to 100 characters.' })
  name!: string;

  @Field(() => [String], { description: 'Scopes of the key, out of those of the caller.' })
  scopes!: Scope[];

  @Field(() => DateTimeScalar, {
    nullable: true,
    description: 'When the key expires, within 366 days. Default: after 90 days.',
  })
  expiresAt?: unknown;
}

@ObjectType({ simpleResolvers: true, description: 'A new API key. The key is returned only once.' })
class ApiKeyPayload {
  @Field(() => String, { description: 'The key for the header `Authorization: Bearer`.' })
  key!: string;

  @Field(() => ApiKey, { description: 'The stored API key.' })
  apiKey!: ApiKey;
}

@Resolver(() => User)
export class ApiKeyResolver {
  @IgnoresIdempotencyKey()
  @Mutation(() => ApiKeyPayload, {
    description: 'Creates an API key, with which a program acts as the caller.',
  })
  createApiKey(
    @Ctx() ctx: Context,
    @Arg('input', () => ApiKeyInput, { description: 'The new API key.' })
    input: ApiKeyInput,
  ): Promise<ApiKeyPayload> {
    return apiKeys.create(ctx, input);
  }

  @Mutation(() => ApiKey, {
    description: "Revokes one of the caller's API keys immediately and returns it.",
  })
  revokeApiKey(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, { description: 'The id of the API key, as `apiKeys` lists it.' })
    id: string,
  ): Promise<ApiKey> {
    return apiKeys.revoke(ctx, id);
  }

  @FieldResolver(() => ApiKeyConnection, {
    description:
      "The user's valid API keys, the latest first. Empty for other users than the caller, and for callers with an API key.",
  })
  async apiKeys(
    @Ctx() ctx: Context,
    @Root() user: User,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<ApiKey>> {
    return new ApiKeyConnection(await apiKeys.pageOf(ctx, user.pk, args));
  }
}
