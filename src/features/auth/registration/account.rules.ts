import { z } from 'zod';
import { isStorable } from '../../../core/text.ts';
import { refuse } from '../../../core/validation.ts';
import { newEmail, newFullName, newPassword, newUsername } from '../../users/user.rules.ts';

const MAX_ASKED = 254;

/** An address that an account is wanted for. Where two are the same but for upper and lower case, they are one. */
export const registration = z.object({ email: newEmail.transform((text) => text.toLowerCase()) });

/** What the holder of the address says of the new account. */
export const confirmation = z.object({
  token: z.string(),
  username: newUsername,
  password: newPassword,
  fullName: newFullName.nullish(),
});

/** Whose password was forgotten: a username or an address, and whatever could be one. */
export const forgotten = z.object({
  user: z.string().superRefine((text, ctx) => {
    if (text === '') refuse(ctx, 'string_too_short', 'String should have at least 1 character');
    if (text.length > MAX_ASKED) refuse(ctx, 'string_too_long', `String should have at most ${MAX_ASKED} characters`);
    if (!isStorable(text)) refuse(ctx, 'string_control_characters', 'String should have no NUL and be well-formed Unicode');
  }),
});

/** A new password, with the token that allows it. */
export const reset = z.object({ token: z.string(), new: newPassword });
