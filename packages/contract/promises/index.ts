import type { Section } from '../promised.ts';
import { resources } from './2-resources.ts';
import { tokenFlow } from './4.1-token-flow.ts';
import { sessionFlow } from './4.2-session-flow.ts';
import { catalogue } from './4.3-catalogue.ts';
import { paginatedUsers } from './4.4-paginated-users.ts';
import { preflight } from './4.5-preflight.ts';
import { bearerToken } from './5.1-bearer-token.ts';
import { claims } from './5.2-claims.ts';
import { sessionKey } from './5.3-session-key.ts';
import { errors } from './7-errors.ts';
import { limits } from './8-limits.ts';
import { versions } from './9-versions.ts';

/** All promises, in the order of the interface. */
export const sections: readonly Section[] = [
  resources,
  tokenFlow,
  sessionFlow,
  catalogue,
  paginatedUsers,
  preflight,
  bearerToken,
  claims,
  sessionKey,
  errors,
  limits,
  versions,
];
