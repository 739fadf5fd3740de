import { z } from 'zod';
import { SCOPES } from '../../core/scopes.ts';
import { lineOf } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';

/** Maximum length of a username, in characters. */
export const MAX_USERNAME = 150;

/** Characters that are not displayed. */
export const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** New username: a line of 1 to 150 characters, stored without width and invisible characters. */
export const newUsername = z
  .string()
  .transform((text) => text.replace(IGNORABLE, '').normalize('NFKC'))
  .pipe(lineOf(MAX_USERNAME));

/** Maximum length of an email address, in characters (RFC 5321, 4.5.3.1.3). */
export const MAX_EMAIL = 254;
/** Maximum length of a display name, in characters. */
export const MAX_FULL_NAME = 255;
/** Minimum length of a password, in characters. */
const MIN_PASSWORD = 8;
/** Maximum length of a password, in bytes. bcrypt ignores further bytes. */
export const MAX_PASSWORD_BYTES = 72;

/** New password: at least 8 characters, at most 72 bytes of UTF-8, otherwise unrestricted. */
export const newPassword = z.string().superRefine((text, ctx) => {
  // Lone surrogates would all become the same bytes.
  if (!text.isWellFormed())
    reject(ctx, 'string_control_characters', 'A password must be well-formed Unicode');
  if ([...text].length < MIN_PASSWORD)
    reject(ctx, 'string_too_short', `A password must have at least ${MIN_PASSWORD} characters`);
  if (Buffer.byteLength(text) > MAX_PASSWORD_BYTES)
    reject(ctx, 'string_too_long', `A password must have at most ${MAX_PASSWORD_BYTES} bytes`);
});

/** New email address. */
export const newEmail = z.string().trim().pipe(z.email('Input is not valid').max(MAX_EMAIL));

/** New display name. */
export const newFullName = lineOf(MAX_FULL_NAME);

/** New user. */
export const newUser = z.object({
  username: newUsername,
  password: newPassword,
  email: newEmail.optional(),
  fullName: newFullName.optional(),
  scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)).optional(),
});
