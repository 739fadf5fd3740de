import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { SCOPES } from '../../core/scopes.ts';
import { lineOf } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';
import { newUsername } from './username.ts';

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

/** Returns the address without surrounding space, and with its domain in ASCII (RFC 5891). */
export function normalEmail(text: string): string {
  const address = text.trim();
  const [, local, domain = ''] = /^(.*@)([^@]+)$/u.exec(address) ?? [];
  // Text that is no domain becomes ''.
  const ascii = /[^\0-\x7f]/.test(domain) ? domainToASCII(domain) : '';
  return ascii === '' ? address : `${local}${ascii}`;
}

/** Accepts no top-level domain of other letters, so that one is checked as `.example`. */
const email = z.email();

/** New email address. */
export const newEmail = z
  .string()
  .transform(normalEmail)
  .refine(
    (text) => email.safeParse(text.replace(/\.xn--[a-z\d-]+$/i, '.example')).success,
    'Input is not valid',
  )
  .refine(
    (text) => text.length <= MAX_EMAIL,
    `An address must have at most ${MAX_EMAIL} characters`,
  );

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
