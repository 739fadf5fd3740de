import type { Dependencies } from '../../http/dependencies.ts';
import type { SubscriptionRegistry } from './registry.ts';
import type { Subscriptions } from './subscription.ts';
import type { TrustedDocuments } from '../trusted-documents.ts';

/** Error format of the GraphQL API. */
export const ERROR_FORMAT = { endpoint: 'graphql', errorKey: 'errors', inputPart: 'body' } as const;

/** State shared by the WebSocket and server-sent events transports. */
export interface SubscriptionConnections {
  dependencies: Dependencies;
  registry: SubscriptionRegistry;
  subscriptions: Subscriptions;
  /** Undefined if any document may run. */
  trusted: TrustedDocuments | undefined;
}
