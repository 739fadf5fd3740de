import type { z } from 'zod';
import * as apiKeys from '../../api-keys/api-key.service.ts';
import { accountOf, asUser, record } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { signOut } from '../caller.service.ts';
import { withHashSlot } from './hashing.ts';
import { hashPassword } from './password.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { MailTemplate } from '../../../api/mail.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { check } from '../../../core/validation.ts';
import { enqueue } from '../../mail/mail.service.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import * as mails from '../registration/account-mails.ts';
import { resetRequest, reset as resetRules } from '../registration/account.rules.ts';
import { requestMail, badToken, requireEnabled } from '../registration/mail-request.ts';

/** Lifetime of a password reset token, in ms. */
const TOKEN_LIFETIME_MS = 3_600_000;

/** Kind of the mail with a password reset token. */
export const RESET = 'password-reset';

/** Kind of the mail with a token for one of several users with the same address. */
export const RESET_OF_ONE = 'password-reset-of-one';

/** Kind of the notice that the password was set by mail. */
export const PASSWORD_CHANGED = 'password-changed';

/**
 * Requests a mail with a password reset token for the user of this name, or each user with this
 * address, whether or not there is one. Throws BAD_USER_INPUT, FORBIDDEN if PASSWORD_RESET is off,
 * RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, nameOrEmail: string): Promise<void> {
  requireEnabled(ctx, 'passwordReset');
  const { user } = check(resetRequest, { user: nameOrEmail });
  await requestMail(ctx, RESET, user);
}

/**
 * Returns the mail to the user with the name or address. Disabled users and users without a
 * password get none. For several users, enqueues a separate mail to each instead, so that each mail
 * succeeds or fails alone.
 */
export async function mailTemplate(
  ctx: Context,
  nameOrEmail: string,
): Promise<MailTemplate | undefined> {
  const matches = (await users.byNameOrEmail(ctx, nameOrEmail)).filter(canReset);
  if (matches.length < 2) return templateFor(ctx, matches[0]);
  for (const { username } of matches) await enqueue(ctx, RESET_OF_ONE, username, true);
  return undefined;
}

/** Returns the mail to the user of this name. */
export async function mailTemplateOfOne(
  ctx: Context,
  username: string,
): Promise<MailTemplate | undefined> {
  return templateFor(ctx, await users.byUsername(ctx, username));
}

function templateFor(ctx: Context, user: User | undefined): MailTemplate | undefined {
  if (!user?.email || !canReset(user)) return undefined;
  const { email: to, username } = user;
  return {
    to,
    countsAs: RESET,
    write: async () => mails.passwordReset(ctx.config, username, await makeToken(ctx, user)),
  };
}

function canReset({ disabled, email, hashedPassword }: User): boolean {
  return !disabled && email !== null && hashedPassword !== null;
}

// Earlier tokens stay valid: anybody may request another for this user.
async function makeToken(ctx: Context, { pk }: User): Promise<string> {
  const token = newSecretKey();
  await execute(
    ctx.em,
    sql`
    insert into password_reset (token_hash, user_pk, expires_at) values (${hashKey(token)}, ${pk}, ${new Date(ctx.now().getTime() + TOKEN_LIFETIME_MS)})`,
  );
  return token;
}

/**
 * Sets the password of the user to whom the token was sent. Ends all sessions and API keys, so that
 * nobody who knew the old password retains access, and all their tokens. Throws BAD_USER_INPUT,
 * also for an invalid token, FORBIDDEN and UNAVAILABLE.
 */
export async function reset(ctx: Context, input: z.input<typeof resetRules>): Promise<User> {
  requireEnabled(ctx, 'passwordReset');
  const { token, new: password } = check(resetRules, input);
  const { rows } = await execute(
    ctx.em,
    sql`select pk from password_reset join "user" on pk = user_pk where ${isValid(ctx, token)}`,
  );
  // Checked before the password is hashed.
  if (!rows[0]) throw badToken(ctx, 'account.reset');
  const pk = Number(rows[0]['pk']);
  const hash = await withHashSlot(ctx, () => hashPassword(ctx, password));
  const { user, ended } = await inTransaction(ctx, async (tx) => {
    // Resets of one user run one after another, whichever of the tokens they have.
    await execute(tx.em, sql`select from "user" where pk = ${pk} for no key update`);
    const { affected } = await execute(
      tx.em,
      sql`delete from password_reset using "user" where pk = user_pk and ${isValid(tx, token)}`,
    );
    // A concurrent request has used a token of the user.
    if (affected === 0) throw badToken(tx, 'account.reset');
    const sids = await accounts.replacePassword(tx, pk, hash);
    const changed = await users.byPk(tx, pk);
    const userCtx = asUser(tx, changed);
    await record(userCtx, 'account.password_reset', accountOf(changed));
    await apiKeys.revokeOf(userCtx, pk);
    await enqueue(tx, PASSWORD_CHANGED, changed.username, true);
    return { user: changed, ended: sids };
  });
  signOut(ctx, ended);
  ctx.log.info(
    { event: 'account.reset', outcome: 'success', user: user.username, sessions: ended.length },
    'Password reset',
  );
  return user;
}

/** Returns the notice to the user of this name that the password was set by mail. */
export async function changedMailTemplate(
  ctx: Context,
  username: string,
): Promise<MailTemplate | undefined> {
  const user = await users.byUsername(ctx, username);
  return user?.email
    ? { to: user.email, isNotice: true, write: () => mails.passwordChanged(ctx.config, username) }
    : undefined;
}

/** Deletes expired password resets. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from password_reset where expires_at <= ${ctx.now()}`,
  );
  return affected;
}

function isValid(ctx: Context, token: string): Sql {
  return sql`token_hash = ${hashKey(token)} and expires_at > ${ctx.now()} and not "user".disabled`;
}
