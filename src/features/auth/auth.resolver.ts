import {
  Arg,
  Args,
  Ctx,
  Field,
  FieldResolver,
  ID,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Resolver,
  Root,
} from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { IgnoresIdempotencyKey } from '../../api/ignores-idempotency-key.ts';
import { OncePerOperation } from '../../api/once-per-operation.ts';
import { User } from '../users/user.entity.ts';
import * as auth from './auth.service.ts';
import * as passwordReset from './passwords/password-reset.service.ts';
import * as registration from './registration/registration.service.ts';
import { Session } from './sessions/session.entity.ts';
import * as sessions from './sessions/session.service.ts';

const SessionConnection = connectionType(Session);

const TOKEN = 'The token from the mail.';
const PASSWORD_RULE = '8 characters or more, at most 72 bytes.';

@InputType({ description: 'A request for an account.' })
class RegistrationInput {
  @Field(() => String, { description: 'The address of the account. The mail is sent to it.' })
  email!: string;
}

@InputType({ description: 'A new account, as chosen by the owner of its address.' })
class ConfirmationInput {
  @Field(() => String, { description: TOKEN })
  token!: string;

  @Field(() => String, {
    description:
      'The name to sign in with: 1 to 150 characters. It must not differ from that of another user only in case, width or invisible characters.',
  })
  username!: string;

  @Field(() => String, { description: `The password: ${PASSWORD_RULE}` })
  password!: string;

  @Field(() => String, { nullable: true, description: 'The name to show.' })
  fullName?: string | null;
}

@ObjectType({
  simpleResolvers: true,
  description: 'The credentials of a new or refreshed session. They are returned only once.',
})
export class LoginPayload {
  @Field(() => String, { description: 'The access token for the header `Authorization: Bearer`.' })
  accessToken!: string;

  @Field(() => String, { description: 'Always `bearer`.' })
  tokenType!: string;

  @Field(() => Int, { description: 'Lifetime of the access token, in seconds.' })
  expiresIn!: number;

  @Field(() => String, {
    description: 'Single-use token for `refresh`. An older one ends the session.',
  })
  refreshToken!: string;

  @Field(() => String, {
    description: 'The session key for the header `X-SESSION-ID` and for `logout`.',
  })
  sessionKey!: string;

  @Field(() => User, { description: 'The user of the session.' })
  user!: User;
}

@ObjectType({ simpleResolvers: true, description: 'Result of a logout.' })
export class LogoutPayload {
  @Field(() => Int, { description: 'Number of sessions ended.' })
  ended!: number;
}

@Resolver(() => User)
export class AuthResolver {
  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => LoginPayload, { description: 'Signs in and opens a session.' })
  async login(
    @Ctx() ctx: Context,
    @Arg('username', () => String, {
      description: 'The username. Logins ignore case, width and invisible characters.',
    })
    username: string,
    @Arg('password', () => String, { description: 'The password.' }) password: string,
    @Arg('scopes', () => [String], {
      nullable: true,
      description: 'Scopes to which the session is limited. Default: all scopes of the user.',
    })
    scopes?: string[] | null,
  ): Promise<LoginPayload> {
    return payload(ctx, await auth.login(ctx, { username, password }, scopes ?? undefined));
  }

  @IgnoresIdempotencyKey()
  @Mutation(() => LoginPayload, {
    description:
      'Exchanges a refresh token for new credentials of the same session, including a new session key. ' +
      'For some seconds, repeating it with the same refresh token returns the same session key and refresh token.',
  })
  async refresh(
    @Ctx() ctx: Context,
    @Arg('refreshToken', () => String, { description: 'The latest refresh token.' })
    refreshToken: string,
  ): Promise<LoginPayload> {
    return payload(ctx, await auth.refreshAll(ctx, refreshToken));
  }

  @IgnoresIdempotencyKey()
  @Mutation(() => LogoutPayload, {
    description: "Ends the session of the key. Without a key, ends the caller's session.",
  })
  async logout(
    @Ctx() ctx: Context,
    @Arg('sessionKey', () => String, {
      nullable: true,
      description: 'The key of the session to end.',
    })
    sessionKey?: string | null,
  ): Promise<LogoutPayload> {
    return {
      ended: sessionKey == null ? await auth.logout(ctx) : await auth.logoutByKey(ctx, sessionKey),
    };
  }

  @Mutation(() => LogoutPayload, {
    description: "Ends one of the caller's sessions by its id.",
  })
  async endSession(
    @Ctx() ctx: Context,
    @Arg('id', () => ID, { description: 'The id of the session, as `sessions` lists it.' })
    id: string,
  ): Promise<LogoutPayload> {
    return { ended: await auth.endSession(ctx, id) };
  }

  @Mutation(() => LogoutPayload, {
    description: "Ends all of the caller's sessions, including the session of this request.",
  })
  async logoutEverywhere(@Ctx() ctx: Context): Promise<LogoutPayload> {
    return { ended: await auth.endSessions(ctx) };
  }

  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => User, {
    description: "Changes the caller's password and ends the caller's other sessions.",
  })
  changePassword(
    @Ctx() ctx: Context,
    @Arg('current', () => String, { description: 'The current password.' }) current: string,
    @Arg('new', () => String, {
      description: 'The new password: 8 characters or more, at most 72 bytes.',
    })
    next: string,
  ): Promise<User> {
    return auth.changePassword(ctx, current, next);
  }

  @FieldResolver(() => SessionConnection, {
    description:
      "The user's open sessions, the latest first. Empty for other users than the caller.",
  })
  async sessions(
    @Ctx() ctx: Context,
    @Root() user: User,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
  ): Promise<Connection<Session>> {
    return new SessionConnection(await sessions.pageOf(ctx, user.pk, args));
  }
}

@Resolver(() => Session)
export class SessionResolver {
  @FieldResolver(() => Boolean, { description: 'Whether this request belongs to the session.' })
  current(@Ctx() ctx: Context, @Root() session: Session): boolean {
    return ctx.caller?.sessionId === session.sid;
  }
}

@Resolver()
export class AccountResolver {
  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => Boolean, {
    description:
      'Requests a mail with a token to create an account. Always returns true: only the mail says whether the address has an account.',
  })
  async register(
    @Ctx() ctx: Context,
    @Arg('input', () => RegistrationInput, { description: 'The address.' })
    input: RegistrationInput,
  ): Promise<boolean> {
    await registration.request(ctx, input);
    return true;
  }

  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => User, {
    description:
      'Creates the account for which a token was sent. The token can be used once, within 24 hours.',
  })
  confirmRegistration(
    @Ctx() ctx: Context,
    @Arg('input', () => ConfirmationInput, { description: 'The token and the new account.' })
    input: ConfirmationInput,
  ): Promise<User> {
    return registration.confirm(ctx, input);
  }

  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => Boolean, {
    description:
      'Requests a mail with a token to reset a forgotten password. Always returns true, whether the user exists or not.',
  })
  async requestPasswordReset(
    @Ctx() ctx: Context,
    @Arg('user', () => String, { description: 'The username or the email address.' }) user: string,
  ): Promise<boolean> {
    await passwordReset.request(ctx, user);
    return true;
  }

  @OncePerOperation()
  @IgnoresIdempotencyKey()
  @Mutation(() => User, {
    description:
      'Sets the password of the user to whom the token was sent, and ends all sessions and API keys of the user. The token can be used once, within 60 minutes.',
  })
  resetPassword(
    @Ctx() ctx: Context,
    @Arg('token', () => String, { description: TOKEN }) token: string,
    @Arg('new', () => String, { description: `The new password: ${PASSWORD_RULE}` })
    next: string,
  ): Promise<User> {
    return passwordReset.reset(ctx, { token, new: next });
  }
}

function payload(ctx: Context, { user, session, sessionKey }: auth.Login): LoginPayload {
  const { accessToken, expiresIn, refreshToken } = auth.issueTokens(ctx, user, session);
  return { accessToken, tokenType: 'bearer', expiresIn, refreshToken, sessionKey, user };
}
