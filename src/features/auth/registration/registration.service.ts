import type { z } from 'zod';
import { accountOf, asUser, record } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { withHashSlot } from '../passwords/hashing.ts';
import { hashPassword } from '../passwords/password.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { MailTemplate } from '../../../api/mail.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import { check } from '../../../core/validation.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import * as mails from './account-mails.ts';
import { confirmation, registration } from './account.rules.ts';
import { requestMail, badToken, requireEnabled } from './mail-request.ts';

// The response to a registration says only that a mail may arrive: only the mail reveals whether
// the address has an account. The recipient of the mail chooses username and password, so nobody
// can create an account for another person's address with their own password, and a request
// reserves no username.

/** Lifetime of a registration token, in ms. */
const TOKEN_LIFETIME_MS = DAY_MS;

/**
 * Requests a mail with a token to create an account, whether or not the address already has one.
 * Throws BAD_USER_INPUT, FORBIDDEN if REGISTRATION is off, RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, input: z.input<typeof registration>): Promise<void> {
  requireEnabled(ctx, 'registration');
  const { email } = check(registration, input);
  await requestMail(ctx, 'registration', email);
}

/**
 * Returns the mail to the address: a token that is valid for a day, or the accounts that it already
 * has. Returns undefined if all of them are disabled.
 */
export async function mailTemplate(ctx: Context, email: string): Promise<MailTemplate | undefined> {
  const existing = await users.byEmail(ctx, email);
  if (existing.length === 0)
    return {
      to: email,
      write: async () => mails.confirmation(ctx.config, await makeToken(ctx, email)),
    };
  const enabled = existing.filter(({ disabled }) => !disabled).map(({ username }) => username);
  return enabled.length > 0
    ? { to: email, write: () => mails.accountExists(ctx.config, enabled) }
    : undefined;
}

// Earlier tokens stay valid: anybody may request another for this address.
async function makeToken(ctx: Context, email: string): Promise<string> {
  const token = newSecretKey();
  await execute(
    ctx.em,
    sql`
    insert into registration (token_hash, email, expires_at) values (${hashKey(token)}, ${email}, ${new Date(ctx.now().getTime() + TOKEN_LIFETIME_MS)})`,
  );
  return token;
}

/**
 * Creates the account for which the token was sent. Uses up all tokens of the address, except if the
 * username is taken. Throws BAD_USER_INPUT, also for an invalid token, CONFLICT, FORBIDDEN and UNAVAILABLE.
 */
export async function confirm(ctx: Context, input: z.input<typeof confirmation>): Promise<User> {
  requireEnabled(ctx, 'registration');
  const { token, username, password, fullName = null } = check(confirmation, input);
  const { rows } = await execute(
    ctx.em,
    sql`select 1 from registration where ${isValid(ctx, token)}`,
  );
  // Checked before the password is hashed.
  if (rows.length === 0) throw badToken(ctx, 'account.confirm');
  if (await users.isUsernameTaken(ctx, username)) throw accounts.usernameTaken(username);
  const hashedPassword = await withHashSlot(ctx, () => hashPassword(ctx, password));
  const user = await inTransaction(ctx, async (tx) => {
    const [used] = (
      await execute(
        tx.em,
        sql`
        with used as materialized (
          select token_hash as hash from registration
          where email = (select email from registration where ${isValid(tx, token)})
          order by token_hash for update
        )
        delete from registration using used where token_hash = hash returning email`,
      )
    ).rows;
    // A concurrent request has used a token of the address.
    if (!used) throw badToken(tx, 'account.confirm');
    const created = await accounts.store(tx, {
      username,
      fullName,
      email: String(used['email']),
      scopes: [],
      hashedPassword,
    });
    await record(asUser(tx, created), 'account.registered', accountOf(created));
    return created;
  });
  ctx.log.info({ event: 'account.confirm', outcome: 'success', user: username }, 'Account created');
  return user;
}

/** Deletes expired registrations. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from registration where expires_at <= ${ctx.now()}`,
  );
  return affected;
}

function isValid(ctx: Context, token: string): Sql {
  return sql`token_hash = ${hashKey(token)} and expires_at > ${ctx.now()}`;
}
