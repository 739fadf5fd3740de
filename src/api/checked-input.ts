import { Extensions } from 'type-graphql';
import type { z } from 'zod';
import { RULE } from './scalars.ts';

/** The rule by which services validate an input type. */
export interface InputRule {
  /** The schema, or a function that returns the schema for the time of a request. */
  readonly schema: z.ZodType | ((now: Date) => z.ZodType);
  /** Prefix that the services put before field names, if any. */
  readonly under?: string | undefined;
}

/**
 * Sets the rule by which services validate an input type. If graphql-js rejects a request before it
 * reaches the services, graphql/input-errors.ts finds further errors by this rule.
 */
export function CheckedBy(schema: InputRule['schema'], under?: string): ClassDecorator {
  return Extensions({ [RULE]: { schema, under } satisfies InputRule });
}
