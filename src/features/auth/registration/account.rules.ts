import { z } from 'zod';
import { isStorable } from '../../../core/text.ts';
import { reject } from '../../../core/validation.ts';
import { newEmail, newFullName, newPassword } from '../../users/user.rules.ts';
import { newUsername } from '../../users/username.ts';

/** Maximum length of a username or an email address in a password reset, in UTF-16 code units. */
const MAX_NAME_OR_EMAIL = 254;

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
export const resetRequest = z.object({
  user: z.string().superRefine((text, ctx) => {
    if (text === '') reject(ctx, 'string_too_short', 'String should have at least 1 character');
    if (text.length > MAX_NAME_OR_EMAIL)
      reject(ctx, 'string_too_long', `String should have at most ${MAX_NAME_OR_EMAIL} characters`);
    if (!isStorable(text))
      reject(
        ctx,
        'string_control_characters',
        'String should have no NUL and be well-formed Unicode',
      );
  }),
});

/** New password, with the token that permits it. */
export const reset = z.object({ token: z.string(), new: newPassword });
