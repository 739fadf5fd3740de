import { Extensions } from 'type-graphql';
import type { z } from 'zod';
import { RULE } from './scalars.ts';

/** The rule that the services check the values of an input type by. */
export interface InputRule {
  /** The schema, or a function that returns the schema at the time of a request. */
  readonly schema: z.ZodType | ((now: Date) => z.ZodType);
  /** What the services put before the names of its fields, if anything. */
  readonly under?: string | undefined;
}

/**
 * Names the rule that the services check the values of an input type by. Where graphql-js refuses a request, the services are not
 * reached, and the mistakes are found by this rule (graphql/input-errors.ts).
 */
export function CheckedBy(schema: InputRule['schema'], under?: string): ClassDecorator {
  return Extensions({ [RULE]: { schema, under } satisfies InputRule });
}
