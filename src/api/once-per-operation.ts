import { Extensions } from 'type-graphql';

/** The extension of root fields of which an operation may have one, once (graphql/limits.ts). */
export const ONCE = 'once';

/** Marks root fields of which an operation may have one, once: what they do is dear, or worth doing a thousand times to an attacker. */
export function Once(): MethodDecorator {
  return Extensions({ [ONCE]: true });
}
