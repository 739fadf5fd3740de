import { z } from 'zod';
import { SCOPES } from '../../core/scopes.ts';
import { lineOf } from '../../core/text.ts';
import { refuse } from '../../core/validation.ts';

/** Maximum length of a username, in characters. */
export const MAX_USERNAME = 150;
/** Maximum length of an email address, in characters (RFC 5321, 4.5.3.1.3). */
export const MAX_EMAIL = 254;
/** Maximum length of the name to show, in characters. */
export const MAX_FULL_NAME = 255;
const MIN_PASSWORD = 8;
/** Maximum length of a password, in bytes: bcrypt reads no further. */
export const MAX_PASSWORD_BYTES = 72;

/** A username as it is stored: 1 to 150 characters, kept exactly, without control characters or space at its ends. */
export const newUsername = lineOf(MAX_USERNAME);

/** A password as it may be set: 8 characters or more, at most 72 bytes of UTF-8, otherwise as it comes. */
export const newPassword = z.string().superRefine((text, ctx) => {
  // Halves of a surrogate pair would all be the same bytes.
  if (!text.isWellFormed()) refuse(ctx, 'string_control_characters', 'A password is well-formed Unicode');
  if ([...text].length < MIN_PASSWORD) refuse(ctx, 'string_too_short', `A password has at least ${MIN_PASSWORD} characters`);
  if (Buffer.byteLength(text) > MAX_PASSWORD_BYTES) refuse(ctx, 'string_too_long', `A password has at most ${MAX_PASSWORD_BYTES} bytes`);
});

/** An address that a mail can be sent to. */
export const newEmail = z.email().refine((text) => text.length <= MAX_EMAIL, `An address has at most ${MAX_EMAIL} characters`);

/** The name to show. */
export const newFullName = lineOf(MAX_FULL_NAME);

/** What a new user is made of. */
export const newUser = z.object({
  username: newUsername,
  password: newPassword,
  email: newEmail.optional(),
  fullName: newFullName.optional(),
  scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)).optional(),
});
