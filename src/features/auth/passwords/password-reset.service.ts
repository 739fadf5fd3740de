import type { z } from 'zod';
import * as apiKeys from '../../api-keys/api-key.service.ts';
import { accountOf, asUser, record } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { signOut } from '../callers.ts';
import { hashPassword } from './hashing.ts';
import { PasswordReset } from './password-reset.entity.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { MailMessage } from '../../../api/mail.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import { check } from '../../../core/validation.ts';
import { requestMail } from '../../mail/mail.service.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import { resetRequest, reset as resetRules } from '../auth.rules.ts';
import { badToken, mailOf, requireEnabled, tokenParagraph } from '../registration/mailed-token.ts';
import { deleteUntil } from '../../../database/kysely.ts';

/** Lifetime of a password reset token, in ms. */
const TOKEN_LIFETIME_MS = 3_600_000;

/** Kind of the mail with a password reset token. */
export const RESET = 'password-reset';

/**
 * Requests a mail with a password reset token for the user of this name, or the only user with this
 * address, whether or not there is one. Throws BAD_USER_INPUT, FORBIDDEN if PASSWORD_RESET is off,
 * RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, nameOrEmail: string): Promise<void> {
  requireEnabled(ctx, 'passwordReset');
  const { user } = check(resetRequest, { user: nameOrEmail });
  await requestMail(ctx, RESET, users.usernameForm(user));
}

/**
 * Writes the mail to the user with the name or address. Disabled users and users without a password
 * get none.
 */
export async function writeMail(
  ctx: Context,
  nameOrEmail: string,
): Promise<MailMessage | undefined> {
  const user = await users.byEmailOrName(ctx, nameOrEmail);
  if (!user?.email || user.disabled || user.hashedPassword === null) return undefined;
  // Earlier tokens stay valid: anybody may request another for this user.
  const token = newSecretKey();
  const expiresAt = new Date(ctx.now().getTime() + TOKEN_LIFETIME_MS);
  await ctx.em.insert(PasswordReset, { tokenHash: hashKey(token), userPk: user.pk, expiresAt });
  return mailOf(
    ctx,
    user.email,
    'Set a new password',
    `We received a request to reset the password of ${user.username}. To set a new one:`,
    tokenParagraph(ctx, 'reset', token),
    'This works once, within one hour. If you did not request a new password, ignore this mail: the password stays the same.',
  );
}

/**
 * Sets the password of the user to whom the token was sent. Ends all sessions and API keys, so that
 * nobody who knew the old password retains access, and all their tokens. Throws BAD_USER_INPUT,
 * also for an invalid token, FORBIDDEN and UNAVAILABLE.
 */
export async function reset(ctx: Context, input: z.input<typeof resetRules>): Promise<User> {
  requireEnabled(ctx, 'passwordReset');
  const { token, new: password } = check(resetRules, input);
  const valid = () => ({ tokenHash: hashKey(token), expiresAt: { $gt: ctx.now() } });
  const found = await ctx.em.findOne(PasswordReset, valid(), { disableIdentityMap: true });
  // Checked before the password is hashed.
  if (!found || (await users.byPk(ctx, found.userPk)).disabled) throw badToken(ctx);
  const { userPk: pk } = found;
  const hash = await hashPassword(ctx, password);
  const { user, ended } = await inTransaction(ctx, async (tx) => {
    // Resets of one user run one after another, whichever of the tokens they have.
    const changed = await users.lock(tx, pk);
    // A concurrent request has used a token of the user.
    if (!changed || changed.disabled || !(await tx.em.nativeDelete(PasswordReset, valid())))
      throw badToken(tx);
    const sids = await accounts.replacePassword(tx, pk, hash);
    const userCtx = asUser(tx, changed);
    await record(userCtx, 'account.password_reset', accountOf(changed));
    await apiKeys.revokeOf(userCtx, pk);
    return { user: changed, ended: sids };
  });
  signOut(ctx, ended);
  return user;
}

/** Deletes expired password resets. Returns their number. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'password_reset', 'expires_at', ctx.now());
}
