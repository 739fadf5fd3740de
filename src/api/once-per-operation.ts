import { Extensions } from 'type-graphql';

/** Extension of root fields of which an operation may select only one, once (graphql/documents.ts). */
export const ONCE_PER_OPERATION = 'once';

/** Marks expensive or often attacked root fields: one per operation, selected once. */
export function OncePerOperation(): MethodDecorator {
  return Extensions({ [ONCE_PER_OPERATION]: true });
}
