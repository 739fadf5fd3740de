import type { GraphQLSchema } from 'graphql';
import type { Dependencies } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { SubscriptionRegistry } from './registry.ts';
import { Subscriptions } from './subscription.ts';
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

/** Creates the state shared by both transports. */
export function openConnections(
  dependencies: Dependencies,
  schema: GraphQLSchema,
  trusted: TrustedDocuments | undefined,
  operations: Operations,
): SubscriptionConnections {
  return {
    dependencies,
    registry: new SubscriptionRegistry(dependencies),
    subscriptions: new Subscriptions(schema, dependencies, operations),
    trusted,
  };
}
