import { Extensions } from 'type-graphql';

/** The extension of fields that cost more than their object (graphql/cost.ts). */
export const WEIGHT = 'weight';

/** Marks a field that costs as much as so many objects, because its text may be as long. */
export function Weight(objects: number): PropertyDecorator {
  return Extensions({ [WEIGHT]: objects });
}
