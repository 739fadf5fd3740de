import type { z } from 'zod';
import * as apiKeys from '../../api-keys/api-key.service.ts';
import { accountOf, asUser, note } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { signOut } from '../caller.service.ts';
import { inTurn } from './hashing.ts';
import { hashPassword } from './password.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { Draft } from '../../../api/mail.ts';
import { hashKey, newKey } from '../../../core/secret-key.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { check } from '../../../core/validation.ts';
import { post } from '../../mail/mail.service.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import * as words from '../registration/account-mails.ts';
import { forgotten, reset as resetRules } from '../registration/account.rules.ts';
import { askForMail, badToken, requireOn } from '../registration/mail-request.ts';

/** How long the token of a new password is good, in ms. */
const LIFE_MS = 3_600_000;

/** The kind of letter that leads to a new password. */
export const RESET = 'password-reset';

/** The kind of letter that leads one of several to a new password. */
export const RESET_OF_ONE = 'password-reset-of-one';

/** The kind of letter that tells of a new password. */
export const PASSWORD_CHANGED = 'password-changed';

/**
 * Asks for a mail with which the user of this name, or each of this address, can set a new password. Whether there is one makes no difference here.
 * Throws BAD_USER_INPUT, FORBIDDEN where PASSWORD_RESET is off, RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, asked: string): Promise<void> {
  requireOn(ctx, 'passwordReset');
  const { user } = check(forgotten, { user: asked });
  await askForMail(ctx, RESET, user);
}

/**
 * To the user whom the name or address means: not to who is disabled, and not to who has no password to forget. Where several are meant, each has a letter of
 * its own asked for, so that what becomes of one is nothing to the others.
 */
export async function draft(ctx: Context, asked: string): Promise<Draft | undefined> {
  const meant = (await users.byNameOrEmail(ctx, asked)).filter(canReset);
  if (meant.length < 2) return draftTo(ctx, meant[0]);
  for (const { username } of meant) await post(ctx, RESET_OF_ONE, username, true);
  return undefined;
}

/** To the user of this name. */
export async function draftOfOne(ctx: Context, username: string): Promise<Draft | undefined> {
  return draftTo(ctx, await users.byUsername(ctx, username));
}

function draftTo(ctx: Context, user: User | undefined): Draft | undefined {
  if (!user?.email || !canReset(user)) return undefined;
  const { email: to, username } = user;
  return { to, countsAs: RESET, write: async () => words.passwordReset(ctx.config, username, await makeToken(ctx, user)) };
}

function canReset({ disabled, email, hashedPassword }: User): boolean {
  return !disabled && email !== null && hashedPassword !== null;
}

// Good for an hour, in place of any from before.
async function makeToken(ctx: Context, { pk }: User): Promise<string> {
  const token = newKey();
  await execute(
    ctx.em,
    sql`
    insert into password_reset (user_pk, token_hash, expires_at) values (${pk}, ${hashKey(token)}, ${new Date(ctx.now().getTime() + LIFE_MS)})
    on conflict (user_pk) do update set token_hash = excluded.token_hash, expires_at = excluded.expires_at`,
  );
  return token;
}

/**
 * Sets the password of the user whom the token was sent to, and ends all sessions and API keys: whoever else had the old password, has nothing left.
 * The token is used with it. Throws BAD_USER_INPUT, also for a token that is not good, FORBIDDEN and UNAVAILABLE.
 */
export async function reset(ctx: Context, input: z.input<typeof resetRules>): Promise<User> {
  requireOn(ctx, 'passwordReset');
  const { token, new: password } = check(resetRules, input);
  const { rows } = await execute(ctx.em, sql`select 1 from password_reset join "user" on pk = user_pk where ${good(ctx, token)}`);
  // Before anything is hashed.
  if (rows.length === 0) throw badToken(ctx, 'account.reset');
  const hash = await inTurn(ctx, () => hashPassword(ctx, password));
  const { user, ended } = await inTransaction(ctx, async (tx) => {
    const [used] = (
      await execute(tx.em, sql`delete from password_reset using "user" where pk = user_pk and ${good(tx, token)} returning pk`)
    ).rows;
    // Of two at once, the other was first.
    if (!used) throw badToken(tx, 'account.reset');
    const pk = Number(used['pk']);
    const sids = await accounts.replacePassword(tx, pk, hash);
    const changed = await users.byPk(tx, pk);
    const own = asUser(tx, changed);
    await note(own, 'account.password_reset', accountOf(changed));
    await apiKeys.revokeOf(own, pk);
    await post(tx, PASSWORD_CHANGED, changed.username, true);
    return { user: changed, ended: sids };
  });
  signOut(ctx, ended);
  ctx.log.info({ event: 'account.reset', outcome: 'success', user: user.username, sessions: ended.length }, 'a password was set by mail');
  return user;
}

/** Tells the user of this name that the password was set by mail. */
export async function draftChanged(ctx: Context, username: string): Promise<Draft | undefined> {
  const user = await users.byUsername(ctx, username);
  return user?.email ? { to: user.email, isNotice: true, write: () => words.passwordChanged(ctx.config, username) } : undefined;
}

/** Deletes what has expired. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from password_reset where expires_at <= ${ctx.now()}`);
  return affected;
}

function good(ctx: Context, token: string): Sql {
  return sql`token_hash = ${hashKey(token)} and expires_at > ${ctx.now()} and not "user".disabled`;
}
