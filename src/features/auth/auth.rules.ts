import { z } from 'zod';
import { isStorable } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';
import { MAX_PASSWORD_BYTES } from '../users/user.rules.ts';
import { MAX_USERNAME } from '../users/username.ts';

/**
 * The username and password of a login. Text that cannot be a username is bad input; all other text
 * is treated as a username, known or not.
 */
export const credentials = z.object({
  // Not `min(1)`: zod compares the `length` of any value that has one, even if not comparable.
  username: z
    .string()
    .superRefine((text, ctx) => {
      if (text === '') reject(ctx, 'string_too_short', 'String should have at least 1 character');
      if (!isStorable(text))
        reject(
          ctx,
          'string_control_characters',
          'String should have no NUL and be well-formed Unicode',
        );
    })
    .meta({
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
