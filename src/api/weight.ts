import { Extensions } from 'type-graphql';

/** Extension of fields with a cost of their own (graphql/cost.ts). */
export const WEIGHT = 'weight';

/** Marks a field that costs as much as `objects` objects, because its text may be that long. */
export function Weight(objects: number): PropertyDecorator {
  return Extensions({ [WEIGHT]: objects });
}

/**
 * Weight of a `totalCount`: a fraction, so that a list can tell it from the objects of its page. The
 * sum of those of an operation is less than 1.
 */
export const COUNT = 2 ** -20;
