import { Arg, Ctx, Field, InputType, Mutation, Resolver } from 'type-graphql';
import type { Context } from '../../../request/context.ts';
import { IgnoresIdempotencyKey } from '../../../api/ignores-idempotency-key.ts';
import { OncePerOperation } from '../../../api/once-per-operation.ts';
import { User } from '../../users/user.entity.ts';
import * as passwordReset from '../passwords/password-reset.service.ts';
import * as registration from './registration.service.ts';

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
      'The name to sign in with: 1 to 150 letters, digits and ASCII signs, in one script. It must not look like that of another user.',
  })
  username!: string;

  @Field(() => String, { description: `The password: ${PASSWORD_RULE}` })
  password!: string;

  @Field(() => String, { nullable: true, description: 'The name to show.' })
  fullName?: string | null;
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
