import type { z } from 'zod';
import { accountOf, asUser, note } from '../../audit/audit.log.ts';
import * as accounts from '../user-administration.service.ts';
import { inTurn } from '../passwords/hashing.ts';
import { hashPassword } from '../passwords/password.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import type { Draft } from '../../../api/mail.ts';
import { hashKey, newKey } from '../../../core/secret-key.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import { check } from '../../../core/validation.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import * as words from './account-mails.ts';
import { confirmation, registration } from './account.rules.ts';
import { askForMail, badToken, requireOn } from './mail-request.ts';

// Who asks is told nothing but that a mail may come: whether there is an account is told to its address alone. Username and password are chosen by
// the one who has the mail: nobody makes an account for somebody else's address with a password of one's own, and no name is taken by asking.

/** How long the token of a registration is good, in ms. */
const LIFE_MS = DAY_MS;

/**
 * Asks for a mail with which an account can be made. Whether the address has one already makes no difference here. Throws BAD_USER_INPUT,
 * FORBIDDEN where REGISTRATION is off, RATE_LIMITED and UNAVAILABLE.
 */
export async function request(ctx: Context, input: z.input<typeof registration>): Promise<void> {
  requireOn(ctx, 'registration');
  const { email } = check(registration, input);
  await askForMail(ctx, 'registration', email);
}

/** To an address that an account is wanted for: a token that is good for a day, or that there is an account already; nothing to who is disabled. */
export async function draft(ctx: Context, email: string): Promise<Draft | undefined> {
  const known = await users.byEmail(ctx, email);
  if (known.length === 0) return { to: email, write: async () => words.confirmation(ctx.config, await makeToken(ctx, email)) };
  const able = known.filter(({ disabled }) => !disabled).map(({ username }) => username);
  return able.length > 0 ? { to: email, write: () => words.accountExists(ctx.config, able) } : undefined;
}

async function makeToken(ctx: Context, email: string): Promise<string> {
  const token = newKey();
  await execute(
    ctx.em,
    sql`
    insert into registration (email, token_hash, expires_at) values (${email}, ${hashKey(token)}, ${new Date(ctx.now().getTime() + LIFE_MS)})
    on conflict (email) do update set token_hash = excluded.token_hash, expires_at = excluded.expires_at`,
  );
  return token;
}

/**
 * Makes the account that the token was sent for, with the name and password that its holder chooses. The token is used with it; where the name is
 * taken, it stays good. Throws BAD_USER_INPUT, also for a token that is not good, CONFLICT, FORBIDDEN and UNAVAILABLE.
 */
export async function confirm(ctx: Context, input: z.input<typeof confirmation>): Promise<User> {
  requireOn(ctx, 'registration');
  const { token, username, password, fullName = null } = check(confirmation, input);
  const { rows } = await execute(ctx.em, sql`select 1 from registration where ${good(ctx, token)}`);
  // Before anything is hashed.
  if (rows.length === 0) throw badToken(ctx, 'account.confirm');
  if (await users.byUsername(ctx, username)) throw accounts.taken(username);
  const hashedPassword = await inTurn(ctx, () => hashPassword(ctx, password));
  const user = await inTransaction(ctx, async (tx) => {
    const [used] = (await execute(tx.em, sql`delete from registration where ${good(tx, token)} returning email`)).rows;
    // Of two at once, the other was first.
    if (!used) throw badToken(tx, 'account.confirm');
    const made = await accounts.store(tx, { username, fullName, email: String(used['email']), scopes: [], hashedPassword });
    await note(asUser(tx, made), 'account.registered', accountOf(made));
    return made;
  });
  ctx.log.info({ event: 'account.confirm', outcome: 'success', user: username }, 'an account was made');
  return user;
}

/** Deletes what has expired. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from registration where expires_at <= ${ctx.now()}`);
  return affected;
}

function good(ctx: Context, token: string): Sql {
  return sql`token_hash = ${hashKey(token)} and expires_at > ${ctx.now()}`;
}
