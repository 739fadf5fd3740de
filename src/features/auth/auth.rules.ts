import { z } from 'zod';
import { proseOf } from '../../core/text.ts';
import {
  MAX_EMAIL,
  MAX_PASSWORD_BYTES,
  newEmail,
  newFullName,
  newPassword,
  MAX_USERNAME,
  newUsername,
} from '../users/user.rules.ts';

/**
 * The username and password of a login. Text that cannot be a username is bad input; all other text
 * is treated as a username, known or not.
 */
export const credentials = z.object({
  username: proseOf(Infinity).meta({
    description: 'The username. Logins ignore case, width and invisible characters.',
    minLength: 1,
    maxLength: MAX_USERNAME,
    examples: ['alice'],
  }),
  password: z.string().meta({
    description: 'The password.',
    format: 'password',
    maxLength: MAX_PASSWORD_BYTES,
    examples: ['alice-demo-1'],
  }),
});

/** Checked username and password of a login. */
export type Credentials = z.output<typeof credentials>;

/** Request for an account with this address. Addresses that differ only in case are the same. */
export const registration = z.object({ email: newEmail.transform((text) => text.toLowerCase()) });

/** The new account, as chosen by the owner of its address. */
export const confirmation = z.object({
  token: z.string(),
  username: newUsername,
  password: newPassword,
  fullName: newFullName.nullish(),
});

/** Request for a password reset: anything that could be a username or an email address. */
export const resetRequest = z.object({ user: proseOf(MAX_EMAIL) });

/** New password, with the token that permits it. */
export const reset = z.object({ token: z.string(), new: newPassword });
