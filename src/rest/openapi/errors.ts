import { z } from 'zod';

const text = (description: string, ...examples: string[]) => z.string().meta({ description, ...(examples.length > 0 && { examples }) });
const kind = text('The kind of mistake, for programs.', 'missing');

/** An error under `detail`, as most rows have it (docs/decisions.md, "REST"). */
export const detailError = z
  .object({ detail: text('What is wrong.', 'Not authenticated') })
  .meta({ id: 'Error', description: 'An error.' });

/** An error of the session router. */
export const dataError = z
  .object({ data: text('What is wrong.', 'Incorrect login and/or password') })
  .meta({ id: 'SessionError', description: 'An error of the session router.' });

/** What is wrong with input. */
export const validationError = z
  .object({
    detail: z
      .array(
        z.object({
          type: kind,
          loc: z
            .array(z.union([z.string(), z.int().meta({ minimum: 0 })]))
            .meta({ description: 'Where it is.', examples: [['body', 'name']] }),
          msg: text('What is wrong.', 'Field required'),
        }),
      )
      .meta({ description: 'One entry for each mistake.' }),
  })
  .meta({ id: 'ValidationError', description: 'What is wrong with the input, field by field.' });

const oauthMembers = {
  error: text("RFC 6749's code, where grant_type was sent.", 'invalid_grant').optional(),
  error_description: text('What is wrong, where grant_type was sent.', 'Incorrect username or password').optional(),
};

/** An error as RFC 9457 has it. */
export const problem = z
  .object({
    type: text('Always about:blank.', 'about:blank'),
    title: text('What the status means.', 'Unauthorized'),
    status: z.int().meta({ description: 'The status.', minimum: 400, maximum: 599, examples: [401] }),
    detail: text('What is wrong.', 'Not authenticated'),
    code: text('The kind of error, for programs.', 'NOT_AUTHENTICATED'),
    errors: z
      .array(z.object({ field: text('The field.', 'name'), type: kind, message: text('What is wrong.', 'Field required') }))
      .optional()
      .meta({ description: 'One entry for each mistake in the input.' }),
  })
  .meta({ id: 'Problem', description: 'An error as RFC 9457 has it, for clients whose Accept names application/problem+json.' });

const ofTokens = 'of /token and /login, with the members of RFC 6749 where grant_type was sent.';
export const tokenError = detailError.extend(oauthMembers).meta({ id: 'TokenError', description: `An error ${ofTokens}` });
export const tokenValidationError = validationError
  .extend(oauthMembers)
  .meta({ id: 'TokenValidationError', description: `What is wrong with the input ${ofTokens}` });
export const tokenProblem = problem.extend(oauthMembers).meta({ id: 'TokenProblem', description: `A problem ${ofTokens}` });
