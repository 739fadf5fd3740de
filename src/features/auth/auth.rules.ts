import { z } from 'zod';
import { isStorable } from '../../core/text.ts';
import { refuse } from '../../core/validation.ts';
import { MAX_PASSWORD_BYTES, MAX_USERNAME } from '../users/user.rules.ts';

/** The username and password of a login. Anything that could be a username is one that may be unknown; the rest is bad input. */
export const credentials = z.object({
  // Not `min(1)`: zod compares the `length` of whatever has one, and an object's may be nothing that can be compared.
  username: z
    .string()
    .superRefine((text, ctx) => {
      if (text === '') refuse(ctx, 'string_too_short', 'String should have at least 1 character');
      if (!isStorable(text)) refuse(ctx, 'string_control_characters', 'String should have no NUL and be well-formed Unicode');
    })
    .meta({ description: 'The name, compared exactly.', minLength: 1, maxLength: MAX_USERNAME, examples: ['alice'] }),
  password: z
    .string()
    .meta({ description: 'The password.', format: 'password', maxLength: MAX_PASSWORD_BYTES, examples: ['alice-demo-1'] }),
});

/** What a user signs in with. */
export type Credentials = z.output<typeof credentials>;
