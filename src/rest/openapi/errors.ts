import { z } from 'zod';

const text = (description: string, ...examples: string[]) =>
  z.string().meta({ description, ...(examples.length > 0 && { examples }) });
const kind = text('Machine-readable kind of the error.', 'missing');

/** An error under `detail`, as at most endpoints (docs/decisions.md, "REST"). */
export const detailError = z
  .object({ detail: text('Error message.', 'Not authenticated') })
  .meta({ id: 'Error', description: 'An error.' });

/** An error of the session router. */
export const dataError = z
  .object({ data: text('Error message.', 'Incorrect login and/or password') })
  .meta({ id: 'SessionError', description: 'An error of the session router.' });

/** Invalid input. */
export const validationError = z
  .object({
    detail: z
      .array(
        z.object({
          type: kind,
          loc: z
            .array(z.union([z.string(), z.int().meta({ minimum: 0 })]))
            .meta({ description: 'Location of the invalid value.', examples: [['body', 'name']] }),
          msg: text('Error message.', 'Field required'),
        }),
      )
      .meta({ description: 'One entry per error.' }),
  })
  .meta({ id: 'ValidationError', description: 'Invalid input, field by field.' });

const oauthMembers = {
  error: text('Error code of RFC 6749, if grant_type was sent.', 'invalid_grant').optional(),
  error_description: text(
    'Error message, if grant_type was sent.',
    'Incorrect username or password',
  ).optional(),
};

/** An error in the format of RFC 9457. */
export const problem = z
  .object({
    type: text('Always about:blank.', 'about:blank'),
    title: text('Reason phrase of the status.', 'Unauthorized'),
    status: z
      .int()
      .meta({ description: 'HTTP status.', minimum: 400, maximum: 599, examples: [401] }),
    detail: text('Error message.', 'Not authenticated'),
    code: text('Machine-readable error code.', 'NOT_AUTHENTICATED'),
    errors: z
      .array(
        z.object({
          field: text('Name of the field.', 'name'),
          type: kind,
          message: text('Error message.', 'Field required'),
        }),
      )
      .optional()
      .meta({ description: 'One entry per input error.' }),
  })
  .meta({
    id: 'Problem',
    description:
      'An error in the format of RFC 9457, for clients that accept application/problem+json.',
  });

const ofTokens = 'of /token and /login, with the members of RFC 6749 if grant_type was sent.';
export const tokenError = detailError
  .extend(oauthMembers)
  .meta({ id: 'TokenError', description: `An error ${ofTokens}` });
export const tokenValidationError = validationError
  .extend(oauthMembers)
  .meta({ id: 'TokenValidationError', description: `Invalid input ${ofTokens}` });
export const tokenProblem = problem
  .extend(oauthMembers)
  .meta({ id: 'TokenProblem', description: `A problem ${ofTokens}` });
