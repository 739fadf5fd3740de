import type { z } from 'zod';
import { accountOf, asUser, record } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { hashPassword } from '../passwords/hashing.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { MailMessage } from '../../../api/mail.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import { DAY_MS } from '../../../core/time.ts';
import { check } from '../../../core/validation.ts';
import { requestMail } from '../../mail/mail.service.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import { confirmation, registration } from '../auth.rules.ts';
import { badToken, mailOf, requireEnabled, tokenParagraph } from './mailed-token.ts';
import { Registration } from './registration.entity.ts';
import { deleteUntil } from '../../../database/kysely.ts';

// The response to a registration says only that a mail may arrive: only the mail reveals whether
// the address has an account. The recipient of the mail chooses username and password, so nobody
// can create an account for another person's address with their own password, and a request
// reserves no username.

/**
 * Requests a mail with a token to create an account, whether or not the address already has one.
 * Throws BAD_USER_INPUT, FORBIDDEN if REGISTRATION is off, RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, input: z.input<typeof registration>): Promise<void> {
  requireEnabled(ctx, 'registration');
  await requestMail(ctx, 'registration', check(registration, input).email);
}

/**
 * Writes the mail to the address: a token that is valid for a day, or the accounts that it already
 * has. Returns undefined if all of them are disabled.
 */
export async function writeMail(ctx: Context, email: string): Promise<MailMessage | undefined> {
  const existing = await users.byEmail(ctx, email);
  const enabled = existing.filter(({ disabled }) => !disabled).map(({ username }) => username);
  if (enabled.length > 0)
    return mailOf(
      ctx,
      email,
      'You have an account',
      `We received a request to create an account with this address. It already has one: ${enabled.join(', ')}. Sign in with that username.`,
      'If you did not request an account, ignore this mail.',
    );
  if (existing.length > 0) return undefined;
  // Earlier tokens stay valid: anybody may request another for this address.
  const token = newSecretKey();
  const expiresAt = new Date(ctx.now().getTime() + DAY_MS);
  await ctx.em.insert(Registration, { tokenHash: hashKey(token), email, expiresAt });
  return mailOf(
    ctx,
    email,
    'Confirm your address',
    'We received a request to create an account with this address. To create it, choose a password and a username:',
    tokenParagraph(ctx, 'confirm', token),
    'This works once, within 24 hours. If you did not request an account, ignore this mail: no account will be created.',
  );
}

/**
 * Creates the account for which the token was sent. Uses up all tokens of the address, except if the
 * username is taken. Throws BAD_USER_INPUT, also for an invalid token, CONFLICT, FORBIDDEN and
 * UNAVAILABLE.
 */
export async function confirm(ctx: Context, input: z.input<typeof confirmation>): Promise<User> {
  requireEnabled(ctx, 'registration');
  const { token, username, password, fullName = null } = check(confirmation, input);
  const valid = () => ({ tokenHash: hashKey(token), expiresAt: { $gt: ctx.now() } });
  const found = await ctx.em.findOne(Registration, valid(), { disableIdentityMap: true });
  // Checked before the password is hashed.
  if (!found) throw badToken(ctx);
  const { email } = found;
  const hashedPassword = await hashPassword(ctx, password);
  return inTransaction(ctx, async (tx) => {
    // A concurrent request has used a token of the address.
    if (!(await tx.em.nativeDelete(Registration, valid()))) throw badToken(tx);
    await tx.em.nativeDelete(Registration, { email });
    const facts = { username, fullName, email, scopes: [], hashedPassword };
    const created = await accounts.store(tx, facts);
    await record(asUser(tx, created), 'account.registered', accountOf(created));
    return created;
  });
}

/** Deletes expired registrations. Returns their number. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'registration', 'expires_at', ctx.now());
}
