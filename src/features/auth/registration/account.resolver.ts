import { Arg, Ctx, Field, InputType, Mutation, Resolver } from 'type-graphql';
import { CheckedBy } from '../../../api/checked-input.ts';
import type { Context } from '../../../request/context.ts';
import { IgnoresIdempotencyKey } from '../../../api/ignores-idempotency-key.ts';
import { Once } from '../../../api/once-per-operation.ts';
import { User } from '../../users/user.entity.ts';
import * as rules from './account.rules.ts';
import * as passwordReset from '../passwords/password-reset.service.ts';
import * as registration from './registration.service.ts';

const TOKEN = 'The token, as the mail has it.';
const RULE_OF_PASSWORDS = '8 characters or more, at most 72 bytes.';

@CheckedBy(rules.registration)
@InputType({ description: 'An account that somebody wants.' })
class RegistrationInput {
  @Field(() => String, { description: 'The address that it is for, and that the mail goes to.' })
  email!: string;
}

@CheckedBy(rules.confirmation)
@InputType({ description: 'A new account, as the holder of its address wants it.' })
class ConfirmationInput {
  @Field(() => String, { description: TOKEN })
  token!: string;

  @Field(() => String, { description: 'The name to sign in with: 1 to 150 characters, compared exactly.' })
  username!: string;

  @Field(() => String, { description: `The password: ${RULE_OF_PASSWORDS}` })
  password!: string;

  @Field(() => String, { nullable: true, description: 'The name to show.' })
  fullName?: string | null;
}

@Resolver()
export class AccountResolver {
  @Once()
  @IgnoresIdempotencyKey()
  @Mutation(() => Boolean, {
    description:
      'Asks for a mail with which an account can be made. Always true: whether the address has an account is told in the mail, and to nobody else.',
  })
  async register(
    @Ctx() ctx: Context,
    @Arg('input', () => RegistrationInput, { description: 'What is wanted.' }) input: RegistrationInput,
  ): Promise<boolean> {
    await registration.request(ctx, input);
    return true;
  }

  @Once()
  @IgnoresIdempotencyKey()
  @Mutation(() => User, { description: 'Makes the account that a token was sent for. The token is good for a day, and once.' })
  confirmRegistration(
    @Ctx() ctx: Context,
    @Arg('input', () => ConfirmationInput, { description: 'What the account is to be.' }) input: ConfirmationInput,
  ): Promise<User> {
    return registration.confirm(ctx, input);
  }

  @Once()
  @IgnoresIdempotencyKey()
  @Mutation(() => Boolean, {
    description: 'Asks for a mail with which a forgotten password can be set anew. Always true, whether there is such a user or not.',
  })
  async requestPasswordReset(
    @Ctx() ctx: Context,
    @Arg('user', () => String, { description: 'The username, or the address.' }) user: string,
  ): Promise<boolean> {
    await passwordReset.request(ctx, user);
    return true;
  }

  @Once()
  @IgnoresIdempotencyKey()
  @Mutation(() => User, {
    description:
      'Sets the password that a token was sent for, and ends all sessions and API keys of the user. The token is good for 60 minutes, and once.',
  })
  resetPassword(
    @Ctx() ctx: Context,
    @Arg('token', () => String, { description: TOKEN }) token: string,
    @Arg('new', () => String, { description: `The new password: ${RULE_OF_PASSWORDS}` }) next: string,
  ): Promise<User> {
    return passwordReset.reset(ctx, { token, new: next });
  }
}
